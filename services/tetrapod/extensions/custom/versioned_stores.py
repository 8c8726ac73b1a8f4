"""Definitions and stores for each version of a custom resource whose versions have different schemas.

Each store returns and accepts objects in its version, so the registry, validation and admission handle only the version
of the request.

Upstream: the storages that crdHandler makes for each version, with their codecs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from tetrapod.extensions.conversion.webhook import WebhookConverter
from tetrapod.extensions.crds import Crd
from tetrapod.extensions.custom.converted_storage import ConvertedStorage
from tetrapod.extensions.custom.definition import custom_definition
from tetrapod.extensions.custom.storage import CurrentStorage
from tetrapod.extensions.custom.store import CustomStore
from tetrapod.extensions.custom.strategy import CustomStrategy
from tetrapod.extensions.custom.version_codec import VersionCodec
from tetrapod.generic.registry.definition import ResourceDefinition
from tetrapod.generic.storage.interface import ResourceStorage
from tetrapod.machinery.gvk import Object


class Version(NamedTuple):
    """The definition and the store with which requests for one version of a custom resource are served."""

    definition: ResourceDefinition
    store: CustomStore


class ByVersion:
    """The definition and the store of each version of one custom resource. They are created on first use.

    Args:
        declared: the whole CustomResourceDefinition.
        storage: the storage of the objects as they are stored, without conversion.
        current: creates the storage of a version for a definition without a conversion webhook.
        converter: the conversion webhook; None if the definition does not use one.
        crd: the definition in parsed form.
    """

    def __init__(
        self,
        crd: Crd,
        declared: Object,
        storage: ResourceStorage,
        current: Callable[[ResourceDefinition, VersionCodec], CurrentStorage],
        converter: WebhookConverter | None,
    ) -> None:
        self._crd, self._declared, self._storage, self._current, self._converter = (
            crd,
            declared,
            storage,
            current,
            converter,
        )
        self._versions: dict[str, Version] = {}

    def version(self, version: str) -> Version:
        """Return the definition and the store for requests of one version; later calls return the same objects.

        The definition must declare the version.
        """
        served = self._versions.get(version)
        if served is None:
            convert = None if self._converter is None else self._converter.convert
            definition = custom_definition(self._crd, self._declared, version, convert)
            strategy = definition.strategy
            assert isinstance(strategy, CustomStrategy)
            codec = VersionCodec(self._crd.group, strategy.versions, version, self._crd.storage_version)
            storage: CurrentStorage | ConvertedStorage
            if convert is None:
                storage = self._current(definition, codec)
            else:
                storage = ConvertedStorage(
                    self._storage,
                    convert,
                    definition.gvk(version),
                    self._crd.storage_version,
                    codec,
                    definition.group_resource,
                    definition.storage_prefix,
                )
            served = self._versions[version] = Version(definition, CustomStore(definition, storage))
        return served

    def end_watches(self) -> None:
        """End the watches of all versions."""
        for served in self._versions.values():
            served.store.end_watches()
