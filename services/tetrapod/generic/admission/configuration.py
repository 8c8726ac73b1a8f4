"""`PluginConfiguration`: the plugin configurations of --admission-control-config-file.

configuration_file.py reads that file.
Upstream: staging/src/k8s.io/apiserver/pkg/admission/config.go
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from tetrapod.generic.configuration.files import read
from tetrapod.machinery.golang.quoting import go_quote


class Unconfigurable(ValueError):
    """The file of --admission-control-config-file, or a file that it names, is invalid; the text is upstream's."""


class Uninitialized(Unconfigurable):
    """The error of a plugin whose manifest files cannot be read or are invalid; the server cannot start.

    Args:
        plugin: the name of the plugin.
        reason: upstream's text after `failed to initialize admission plugin "NAME": `.
    """

    def __init__(self, plugin: str, reason: str) -> None:
        super().__init__(f"failed to initialize admission plugin {go_quote(plugin)}: {reason}")


@dataclass(frozen=True, slots=True)
class PluginConfiguration:
    """The content of the file of --admission-control-config-file: the configurations of plugins, by plugin name.

    A configuration is JSON in that file (`inline`), or the path of another file (`paths`). The other files are read
    when their plugin is created, so that a disabled plugin may name a missing file.
    """

    inline: Mapping[str, bytes] = field(default_factory=dict)
    paths: Mapping[str, str] = field(default_factory=dict)

    def for_plugin(self, plugin: str) -> bytes | None:
        """Return the configuration of a plugin as JSON or YAML, or None if it has none.

        Raises:
            Unconfigurable: the plugin's file cannot be read.
        """
        if plugin in self.inline:
            return self.inline[plugin]
        if plugin not in self.paths:
            return None
        path = self.paths[plugin]
        try:
            return read(path)
        except ValueError as error:
            raise Unconfigurable(f"Couldn't open admission plugin configuration {path}: {error}") from None


NOTHING: Final = PluginConfiguration()
