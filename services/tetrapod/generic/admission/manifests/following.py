"""`follow_manifests`: gives a plugin the webhooks or policies of its manifest files, and keeps them current."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, TypeVar

from tetrapod.generic.admission.configuration import Uninitialized
from tetrapod.generic.admission.manifests.source import ManifestLoader, Manifests, ManifestSource, is_manifest_error
from tetrapod.machinery.golang.quoting import go_quote

T = TypeVar("T")


def follow_manifests(
    plugin: str,
    directory: str,
    kind: str,
    convert: Callable[[Manifests], list[T]],
    load: ManifestLoader | None,
    background: Callable[[str, Coroutine[Any, Any, None]], object],
) -> ManifestSource[T]:
    """Read a plugin's manifest files, start a task that reloads them after changes, and return their source.

    Args:
        plugin: the name of the plugin.
        directory: the directory of its manifest files.
        kind: the kind of its webhook configurations or policies.
        convert: returns the parsed webhooks or policies of the objects, called after each load.
        load: reads the manifest files; must not be None.
        background: starts a coroutine with a name, which runs until the server stops.

    Raises:
        Uninitialized: the manifests cannot be read, or are invalid; with upstream's text.
    """
    assert load is not None
    try:
        source = ManifestSource(plugin, directory, partial(load, kind=kind), convert)
    except Exception as error:
        if not is_manifest_error(error):
            raise
        subject = "policy" if kind.endswith("Policy") else "webhook"
        text = f"failed to load static {subject} manifests from {go_quote(directory)}: {error}"
        raise Uninitialized(plugin, text) from None
    background(f"manifests/{plugin}", source.run())
    return source
