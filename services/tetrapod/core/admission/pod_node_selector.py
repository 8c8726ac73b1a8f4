"""PodNodeSelector, off by default: pods go to the nodes of their namespace, by its annotation or by a default for all.

Upstream: plugin/pkg/admission/podnodeselector.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tetrapod.core.admission.kinds import NAMESPACES
from tetrapod.core.admission.pod_plugin import PodPlugin, object_of, spec_of
from tetrapod.core.admission.unversioned import read_unversioned
from tetrapod.generic.admission.interface import Attributes
from tetrapod.generic.configuration.shapes import map_of, string, struct
from tetrapod.generic.registry.lister import Lister
from tetrapod.generic.storage.interface import StorageFactory
from tetrapod.machinery import field
from tetrapod.machinery.gvk import GroupResource
from tetrapod.machinery.names import is_qualified_name, is_valid_label_value
from tetrapod.machinery.status import StatusError, forbidden, internal_error

ANNOTATION: Final = "scheduler.alpha.kubernetes.io/node-selector"
_DEFAULT: Final = "clusterDefaultNodeSelector"
_FIELD: Final = "podNodeSelectorPluginConfig"
_PODS: Final = GroupResource("", "pods")
_CONFLICT: Final = "pod node label selector conflicts with its namespace node label selector"
_NOT_LISTED: Final = "pod node label selector labels conflict with its namespace whitelist"


def read_selectors(data: bytes | None) -> Mapping[str, str]:
    """By namespace, what its pods may select; and the default. What makes no sense counts as nothing, as upstream."""
    if data is None:
        return {}
    try:
        config = read_unversioned(data, struct("podnodeselector.pluginConfig", **{_FIELD: map_of(string())}))
    except ValueError:
        return {}
    found: Mapping[str, str] = config.get(_FIELD) or {}
    return found


class PodNodeSelector(PodPlugin):
    name = "PodNodeSelector"
    operations = frozenset({"CREATE"})

    def __init__(self, storages: StorageFactory, selectors: Mapping[str, str]) -> None:
        self._namespaces = Lister(storages, NAMESPACES)
        self._selectors = selectors

    async def admit(self, attributes: Attributes) -> None:
        wanted = await self._of_namespace(attributes)
        merged = wanted | (spec_of(attributes).get("nodeSelector") or {})
        if merged:
            spec_of(attributes)["nodeSelector"] = merged
        self._check_listed(attributes)

    async def validate(self, attributes: Attributes) -> None:
        await self._of_namespace(attributes)
        self._check_listed(attributes)

    async def _of_namespace(self, attributes: Attributes) -> dict[str, str]:
        """What its pods must select, once it is known that this one selects nothing else."""
        name = attributes.namespace
        namespace = await self._namespaces.find("", name)
        if namespace is None:
            raise internal_error(f"namespace {name} does not exist")
        annotations = namespace["metadata"].get("annotations") or {}
        wanted = labels_of(annotations[ANNOTATION] if ANNOTATION in annotations else self._selectors.get(_DEFAULT, ""))
        asked = spec_of(attributes).get("nodeSelector") or {}
        if any(asked.get(key, value) != value for key, value in wanted.items()):
            raise _forbidden(attributes, _CONFLICT)
        return wanted

    def _check_listed(self, attributes: Attributes) -> None:
        listed = labels_of(self._selectors.get(attributes.namespace, ""))
        asked = spec_of(attributes).get("nodeSelector") or {}
        if listed and not asked.items() <= listed.items():
            raise _forbidden(attributes, _NOT_LISTED)


def labels_of(selector: str) -> dict[str, str]:
    """`a=b,c=d`, and nothing else (upstream: labels.ConvertSelectorToLabelsMap).

    Raises:
        StatusError: 500, as upstream answers what is no refusal.
    """
    found: dict[str, str] = {}
    for one in selector.split(",") if selector else ():
        key, *values = one.split("=")
        if len(values) != 1:
            raise StatusError(500, "", f"invalid selector: [{' '.join([key, *values])}]")
        key, value = key.strip(), values[0].strip()
        if texts := is_qualified_name(key):
            raise StatusError(500, "", str(field.invalid("<nil>", key, "; ".join(texts))))
        if texts := is_valid_label_value(value):
            raise StatusError(500, "", str(field.invalid(field.key("", key), value, "; ".join(texts))))
        found[key] = value
    return found


def _forbidden(attributes: Attributes, why: str) -> StatusError:
    """By the pod's own name, which one with a generated name has not yet."""
    return forbidden(_PODS, (object_of(attributes).get("metadata") or {}).get("name") or "", why)
