"""`ConvertedServing`: a custom resource with a conversion webhook: for each version a definition and a store of its own."""

from __future__ import annotations

from tetrapod.extensions.conversion.storage import ConvertedStorage
from tetrapod.extensions.conversion.webhook import WebhookConverter
from tetrapod.extensions.crds import Crd
from tetrapod.extensions.custom.converted_store import ConvertedStore
from tetrapod.extensions.custom.definition import custom_definition
from tetrapod.extensions.custom.store import CustomStore
from tetrapod.extensions.custom.strategy import CustomStrategy
from tetrapod.generic.registry.definition import ResourceDefinition
from tetrapod.generic.storage.interface import ResourceStorage
from tetrapod.machinery.gvk import GroupVersion, Object
from tetrapod.machinery.schema import defaulting, pruning


class ConvertedServing:
    """`declared` is the whole definition, `storage` what is stored as it is."""

    def __init__(self, crd: Crd, declared: Object, storage: ResourceStorage, converter: WebhookConverter) -> None:
        self._crd, self._declared, self._storage, self._converter = crd, declared, storage, converter
        self._made: dict[str, tuple[ResourceDefinition, CustomStore]] = {}

    def version(self, version: str) -> tuple[ResourceDefinition, CustomStore]:
        """The resource as requests of one version have it, with that version as its only truth."""
        made = self._made.get(version)
        if made is None:
            convert = self._converter.convert
            definition = custom_definition(self._crd, self._declared, version, convert)
            strategy = definition.strategy
            assert isinstance(strategy, CustomStrategy)

            def default(obj: Object) -> None:
                stored_as = strategy.versions.get(GroupVersion.parse(obj.get("apiVersion") or "").version)
                if stored_as is not None:
                    defaulting.apply(stored_as.node, obj)

            def prune(obj: Object) -> None:
                pruning.prune(strategy.versions[version].node, obj)

            storage = ConvertedStorage(
                self._storage,
                convert,
                version,
                self._crd.storage_version,
                default=default,
                prune=prune,
                prefix=definition.storage_prefix,
            )
            made = self._made[version] = (definition, ConvertedStore(definition, storage))
        return made

    def end_watches(self) -> None:
        for _, store in self._made.values():
            store.end_watches()
