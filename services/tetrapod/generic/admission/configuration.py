"""`PluginConfiguration`: what --admission-control-config-file says to each plugin. The file is read by configuration_file.py.

Upstream: k8s.io/apiserver/pkg/admission/config.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from tetrapod.generic.configuration.files import read


class Unconfigurable(ValueError):
    """What is wrong with the file itself, or with a file that it names."""


@dataclass(frozen=True, slots=True)
class PluginConfiguration:
    """By plugins' names. Files are read when their plugin is made: one that is off may name a file that is not there."""

    inline: Mapping[str, bytes] = field(default_factory=dict)
    paths: Mapping[str, str] = field(default_factory=dict)

    def of(self, plugin: str) -> bytes | None:
        """
        Raises:
            Unconfigurable: the file that is named for the plugin cannot be read.
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
