"""Between the versions of a custom resource.

With strategy None versions differ in apiVersion, and each has the fields of its own schema; webhooks are in extensions/conversion.
Upstream: apiextensions-apiserver/pkg/apiserver/conversion/nop_converter.go.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tetrapod.extensions.custom.versions import ServedVersion
from tetrapod.machinery.gvk import GroupVersion, Object
from tetrapod.machinery.schema import pruning

Convert = Callable[[Object, str], Object]


def converter(group: str, versions: Mapping[str, ServedVersion], storage_version: str) -> Convert | None:
    """None where renaming is all."""
    if all(v.schema == versions[storage_version].schema for v in versions.values()):
        return None

    def convert(obj: Object, version: str) -> Object:
        obj["apiVersion"] = str(GroupVersion(group, version))
        # What goes into storage is pruned once it is validated, by the strategy.
        if version != storage_version:
            pruning.prune(versions[version].node, obj)
        return obj

    return convert
