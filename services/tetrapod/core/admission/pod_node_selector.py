"""PodNodeSelector, off by default: adds the node selector of its namespace to each pod.

The selector is in the namespace's annotation; without one, a default of the configuration applies. The configuration
can also limit the labels that pods of a namespace may select. Upstream: plugin/pkg/admission/podnodeselector.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tetrapod.core.admission.kinds import NAMESPACES
from tetrapod.core.admission.pod_plugin import PodPlugin, object_of, spec_of
from tetrapod.core.admission.unversioned import read_unversioned
from tetrapod.generic.admission.interface import Attributes
from tetrapod.generic.configuration.schemas import map_of, string, struct
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
    """Return the node selectors in the configuration file as text, such as `a=b,c=d`.

    The key is the namespace whose pods may use only this selector, or `clusterDefaultNodeSelector` for the selector of
    namespaces without an annotation. Without a file, or with an invalid one (as upstream), the result is empty.
    """
    if data is None:
        return {}
    try:
        config = read_unversioned(data, struct("podnodeselector.pluginConfig", **{_FIELD: map_of(string())}))
    except ValueError:
        return {}
    selectors: Mapping[str, str] = config.get(_FIELD) or {}
    return selectors


class PodNodeSelector(PodPlugin):
    """The plugin that adds the namespace's node selector to new pods and rejects pods that conflict with it.

    Args:
        selectors: the result of `read_selectors`.
    """

    name = "PodNodeSelector"
    operations = frozenset({"CREATE"})

    def __init__(self, storages: StorageFactory, selectors: Mapping[str, str]) -> None:
        self._namespaces = Lister(storages, NAMESPACES)
        self._selectors = selectors

    async def admit(self, attributes: Attributes) -> None:
        required = await self._required_labels(attributes)
        merged = required | (spec_of(attributes).get("nodeSelector") or {})
        if merged:
            spec_of(attributes)["nodeSelector"] = merged
        self._check_listed(attributes)

    async def validate(self, attributes: Attributes) -> None:
        await self._required_labels(attributes)
        self._check_listed(attributes)

    async def _required_labels(self, attributes: Attributes) -> dict[str, str]:
        """Return the labels that the namespace, or else the configuration's default, requires pods to select, by key.

        Raises:
            StatusError: 403 if the pod selects another value of such a label; 500 if the namespace does not exist.
        """
        name = attributes.namespace
        namespace = await self._namespaces.find("", name)
        if namespace is None:
            raise internal_error(f"namespace {name} does not exist")
        annotations = namespace["metadata"].get("annotations") or {}
        required = labels_of(
            annotations[ANNOTATION] if ANNOTATION in annotations else self._selectors.get(_DEFAULT, "")
        )
        requested = spec_of(attributes).get("nodeSelector") or {}
        if any(requested.get(key, value) != value for key, value in required.items()):
            raise _forbidden(attributes, _CONFLICT)
        return required

    def _check_listed(self, attributes: Attributes) -> None:
        """Check that the pod selects only labels that the configuration allows in its namespace.

        Namespaces that are not in the configuration allow all labels.

        Raises:
            StatusError: 403, the pod selects another label.
        """
        allowed = labels_of(self._selectors.get(attributes.namespace, ""))
        requested = spec_of(attributes).get("nodeSelector") or {}
        if allowed and not requested.items() <= allowed.items():
            raise _forbidden(attributes, _NOT_LISTED)


def labels_of(selector: str) -> dict[str, str]:
    """Parse a selector of the form `a=b,c=d` into labels; "" gives no labels.

    Raises:
        StatusError: 500, the selector has another form, or a key or value that labels cannot have.
    """
    parsed: dict[str, str] = {}
    for requirement in selector.split(",") if selector else ():
        key, *values = requirement.split("=")
        if len(values) != 1:
            raise StatusError(500, "", f"invalid selector: [{' '.join([key, *values])}]")
        key, value = key.strip(), values[0].strip()
        if texts := is_qualified_name(key):
            raise StatusError(500, "", str(field.invalid("<nil>", key, "; ".join(texts))))
        if texts := is_valid_label_value(value):
            raise StatusError(500, "", str(field.invalid(field.key("", key), value, "; ".join(texts))))
        parsed[key] = value
    return parsed


def _forbidden(attributes: Attributes, why: str) -> StatusError:
    """Return the error 403 about the pod; the name in it is "" if the server has yet to generate the pod's name."""
    return forbidden(_PODS, (object_of(attributes).get("metadata") or {}).get("name") or "", why)
