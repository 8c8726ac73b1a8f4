"""`ManifestSource`: the webhooks or policies of one plugin in a directory of manifest files, reloaded on changes.

Upstream: staging/src/k8s.io/apiserver/pkg/admission/plugin/webhook/manifest/source/source.go,
plugin/policy/manifest/source/source.go
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Generic, NamedTuple, Protocol, TypeVar

from tetrapod.generic.admission.manifests import metrics
from tetrapod.generic.configuration.watching import watch
from tetrapod.machinery.depth import is_depth_error
from tetrapod.machinery.gvk import Object

log = logging.getLogger(__name__)

T = TypeVar("T")


class Manifests(NamedTuple):
    """The valid objects in a directory of manifest files, with defaults, each list sorted by name.

    Attributes:
        objects: the webhook configurations or policies.
        bindings: the bindings of the policies; empty for webhooks.
        digest: the hash of the files.
    """

    objects: Sequence[Object]
    bindings: Sequence[Object]
    digest: str


class ManifestLoader(Protocol):
    """A function that reads the manifest files in a directory."""

    def __call__(self, directory: str, kind: str, known: str | None = None) -> Manifests:
        """Return the objects of a kind in a directory.

        Args:
            directory: the directory.
            kind: the kind of the webhook configurations or policies.
            known: the digest of the files that the caller loaded before, or None. If the files still have it, the
                result has this digest and no objects.

        Raises:
            ValueError: a file cannot be read, or an object is invalid; with upstream's text.
        """
        ...


def is_manifest_error(error: Exception) -> bool:
    """Return whether an exception means that manifests cannot be read, are invalid, or nest too deeply."""
    return isinstance(error, ValueError) or is_depth_error(error)


class ManifestSource(Generic[T]):
    """The webhooks or policies of one plugin in manifest files. A failed reload keeps the current ones.

    Attributes:
        items: the current webhooks or policies, in order. The list is replaced by a reload and must not be modified.

    Args:
        plugin: the name of the plugin, for metrics and the log.
        directory: the directory of the manifest files.
        load: reads the directory (see `ManifestLoader`, without its argument `kind`).
        convert: returns the parsed webhooks or policies in the loaded objects. It is called after each load of changed
            files.

    Raises:
        ValueError: the manifests cannot be read, or are invalid.
        RecursionError, TypeError: they nest too deeply (see `is_manifest_error`).
    """

    def __init__(
        self,
        plugin: str,
        directory: str,
        load: Callable[..., Manifests],
        convert: Callable[[Manifests], list[T]],
    ) -> None:
        self._plugin, self._directory = plugin, directory
        self._load, self._convert = load, convert
        manifests = load(directory)
        self._digest = manifests.digest
        self.items = convert(manifests)
        metrics.record_success(plugin, manifests.digest)

    async def run(self) -> None:
        """Reload the manifests whenever a file changes, and at least once a minute, until cancelled."""
        await self._reload()  # they may have changed since the first load
        await watch(self._directory, self._reload)

    async def _reload(self) -> None:
        try:
            manifests = await asyncio.to_thread(self._load, self._directory, known=self._digest)
            if manifests.digest == self._digest:
                return
            self.items = self._convert(manifests)
        except Exception as error:
            trace = None if is_manifest_error(error) else error
            log.error("reloading the manifests of %s in %s: %s", self._plugin, self._directory, error, exc_info=trace)
            metrics.record_failure(self._plugin)
            return
        self._digest = manifests.digest
        log.info("reloaded the manifests of %s in %s", self._plugin, self._directory)
        metrics.record_success(self._plugin, manifests.digest)


__all__ = ["ManifestLoader", "ManifestSource", "Manifests", "is_manifest_error"]
