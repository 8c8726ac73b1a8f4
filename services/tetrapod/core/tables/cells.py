"""What several kinds' rows have in common: ages, selectors, containers, lists cut short."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Any, Final

from tetrapod.machinery.duration import human_duration
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.labels import format_label_selector
from tetrapod.machinery.table import Column
from tetrapod.machinery.timestamps import parse

NAME: Final = Column("Name", format="name")
AGE: Final = Column("Age")
UNKNOWN: Final = "<unknown>"
NONE: Final = "<none>"
UNSET: Final = "<unset>"


def name_of(obj: Object) -> str:
    name: str = obj["metadata"].get("name", "")
    return name


def seconds(timestamp: str) -> float:
    """A time as seconds since the epoch."""
    return parse(timestamp).timestamp()


def since(timestamp: str | None) -> str:
    """How long ago, as upstream's translateTimestampSince."""
    if not timestamp:
        return UNKNOWN
    return human_duration(time.time() - seconds(timestamp))


def until(timestamp: str | None) -> str:
    if not timestamp:
        return UNKNOWN
    return human_duration(seconds(timestamp) - time.time())


def age(obj: Object) -> str:
    return since(obj["metadata"].get("creationTimestamp"))


def labels_text(labels: Mapping[str, str] | None) -> str:
    """Labels as `a=b,c=d`, sorted; <none> without any."""
    if not labels:
        return NONE
    return ",".join(f"{key}={labels[key]}" for key in sorted(labels))


def selector_text(selector: Object | None) -> str:
    """A LabelSelector as kubectl shows it (metav1.FormatLabelSelector)."""
    return format_label_selector(selector)


def containers(template_spec: Object) -> tuple[str, str]:
    """Names and images of the containers, each joined by commas."""
    found = template_spec.get("containers") or []
    return ",".join(c.get("name", "") for c in found), ",".join(c.get("image", "") for c in found)


def pod_template(obj: Object) -> Object:
    found: Object = (obj.get("spec", {}).get("template") or {}).get("spec") or {}
    return found


def more(items: Iterable[str], limit: int, joiner: str = ",") -> str:
    """The first `limit` items, and how many more there are."""
    listed = list(items)
    text = joiner.join(listed[:limit])
    return f"{text} + {len(listed) - limit} more..." if len(listed) > limit else text


def status_of(obj: Object) -> Object:
    found: Object = obj.get("status") or {}
    return found


def spec_of(obj: Object) -> Object:
    found: Object = obj.get("spec") or {}
    return found


def boolean(value: Any, default: bool = False) -> bool:
    return bool(default if value is None else value)
