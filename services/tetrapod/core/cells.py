"""Cells that several kinds share: ages, selectors, containers, truncated lists."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Any, Final

from tetrapod.machinery.golang.durations import human_duration
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.labels import format_label_selector
from tetrapod.machinery.table import Column
from tetrapod.machinery.timestamps import parse

NAME: Final = Column("Name", format="name")
AGE: Final = Column("Age")
UNKNOWN: Final = "<unknown>"
NONE: Final = "<none>"
UNSET: Final = "<unset>"


MAX_ENDPOINTS: Final = 3


CONTAINERS: Final = Column("Containers", priority=1)
IMAGES: Final = Column("Images", priority=1)
SELECTOR: Final = Column("Selector", priority=1)


def name_of(obj: Object) -> str:
    """Return the object's name, or ""."""
    name: str = obj["metadata"].get("name", "")
    return name


def seconds(timestamp: str) -> float:
    """Return a timestamp as seconds since the epoch."""
    return parse(timestamp).timestamp()


def since(timestamp: str | None) -> str:
    """Return the time since a timestamp in short form. Upstream: translateTimestampSince."""
    if not timestamp:
        return UNKNOWN
    return human_duration(time.time() - seconds(timestamp))


def until(timestamp: str | None) -> str:
    """Return the time until a timestamp in short form."""
    if not timestamp:
        return UNKNOWN
    return human_duration(seconds(timestamp) - time.time())


def age(obj: Object) -> str:
    """Return the time since the object's creation in short form."""
    return since(obj["metadata"].get("creationTimestamp"))


def labels_text(labels: Mapping[str, str] | None) -> str:
    """Return labels as `a=b,c=d`, sorted, or "<none>"."""
    if not labels:
        return NONE
    return ",".join(f"{key}={labels[key]}" for key in sorted(labels))


def selector_text(selector: Object | None) -> str:
    """Format a LabelSelector. Upstream: metav1.FormatLabelSelector."""
    return format_label_selector(selector)


def containers(template_spec: Object) -> tuple[str, str]:
    """Return the names and the images of the containers, each joined by commas."""
    items = template_spec.get("containers") or []
    return ",".join(c.get("name", "") for c in items), ",".join(c.get("image", "") for c in items)


def pod_template(obj: Object) -> Object:
    """Return the spec of a workload's pod template."""
    template_spec: Object = (obj.get("spec", {}).get("template") or {}).get("spec") or {}
    return template_spec


def more(items: Iterable[str], limit: int, joiner: str = ",") -> str:
    """Join the first `limit` items and append how many more there are."""
    texts = list(items)
    text = joiner.join(texts[:limit])
    return f"{text} + {len(texts) - limit} more..." if len(texts) > limit else text


def status_of(obj: Object) -> Object:
    """Return the object's status, or {}."""
    status: Object = obj.get("status") or {}
    return status


def spec_of(obj: Object) -> Object:
    """Return the object's spec, or {}."""
    spec: Object = obj.get("spec") or {}
    return spec


def boolean(value: Any, default: bool = False) -> bool:
    """Return the value as a bool, or the default if it is None."""
    return bool(default if value is None else value)
