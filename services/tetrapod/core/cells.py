"""Cells of Tables that several kinds share: ages, selectors, containers, truncated lists; and one whole Table.

The constants are columns (`NAME`, `AGE`, …) and the texts that kubectl shows for absent values (`NONE`, …).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from tetrapod.machinery.gvk import Object
from tetrapod.machinery.labels import format_label_selector
from tetrapod.machinery.sorting import sort_large
from tetrapod.machinery.table import Column, TableConvertor
from tetrapod.machinery.timed_cells import TimedCell, since

NAME: Final = Column("Name", format="name")
AGE: Final = Column("Age")
NONE: Final = "<none>"
UNSET: Final = "<unset>"


MAX_ENDPOINTS: Final = 3


CONTAINERS: Final = Column("Containers", priority=1)
IMAGES: Final = Column("Images", priority=1)
SELECTOR: Final = Column("Selector", priority=1)


def name_of(obj: Object) -> str:
    """Return metadata.name, or "" if it is not set."""
    name: str = obj["metadata"].get("name", "")
    return name


def age(obj: Object) -> TimedCell | str:
    """Return a cell with the time since metadata.creationTimestamp, or "<unknown>" if it is not set."""
    return since(obj["metadata"].get("creationTimestamp"))


def labels_text(labels: Mapping[str, str] | None) -> str:
    """Return labels as `a=b,c=d`, sorted by key, or "<none>" for an empty map or None."""
    if not labels:
        return NONE
    return ",".join(f"{key}={labels[key]}" for key in sort_large(labels))


def selector_text(selector: Object | None) -> str:
    """Format a LabelSelector as `a=b,c in (d,e)`: "<none>" if it is unset or empty, "<error>" if it is invalid.

    Upstream: staging/src/k8s.io/apimachinery/pkg/apis/meta/v1/helpers.go, FormatLabelSelector
    """
    return format_label_selector(selector)


def containers(template_spec: Object) -> tuple[str, str]:
    """Return the names and the images of a pod spec's regular containers, each joined by commas."""
    items = template_spec.get("containers") or []
    return ",".join(c.get("name", "") for c in items), ",".join(c.get("image", "") for c in items)


def pod_template(obj: Object) -> Object:
    """Return spec.template.spec of a workload, or {} if one of these fields is missing."""
    template_spec: Object = (obj.get("spec", {}).get("template") or {}).get("spec") or {}
    return template_spec


def more(items: Iterable[str], limit: int, joiner: str = ",") -> str:
    """Join the first `limit` items; if there are more, append the number of the others as " + 2 more..."."""
    texts = list(items)
    text = joiner.join(texts[:limit])
    return f"{text} + {len(texts) - limit} more..." if len(texts) > limit else text


def status_of(obj: Object) -> Object:
    """Return the object's status itself, or a new {} if it has none."""
    status: Object = obj.get("status") or {}
    return status


def spec_of(obj: Object) -> Object:
    """Return the object's spec itself, or a new {} if it has none."""
    spec: Object = obj.get("spec") or {}
    return spec


def boolean(value: Any, default: bool = False) -> bool:
    """Return the truth value of `value`, or `default` if `value` is None."""
    return bool(default if value is None else value)


def replicas_table(selector: Callable[[Any], str]) -> TableConvertor:
    """Return the Table of ReplicaSets and ReplicationControllers, which differ in the form of `spec.selector`.

    Args:
        selector: formats `spec.selector`, which is None if it is unset.

    Upstream: pkg/printers/internalversion/printers.go, printReplicaSet and printReplicationController
    """

    def row(obj: Object) -> list[Any]:
        spec, status = spec_of(obj), status_of(obj)
        return [
            name_of(obj),
            spec.get("replicas") or 0,
            status.get("replicas") or 0,
            status.get("readyReplicas") or 0,
            age(obj),
            *containers(pod_template(obj)),
            selector(spec.get("selector")),
        ]

    numbers = (Column(name, "integer") for name in ("Desired", "Current", "Ready"))
    return TableConvertor((NAME, *numbers, AGE, CONTAINERS, IMAGES, SELECTOR), row)
