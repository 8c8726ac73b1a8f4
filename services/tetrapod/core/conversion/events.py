"""Events: core/v1 and events.k8s.io/v1 are one kind under two sets of names (upstream: pkg/apis/events/v1/conversion.go).

Stored as core/v1. What the other form calls differently is renamed; what only one has is kept under its deprecated name.
"""

from __future__ import annotations

from typing import Final

from tetrapod.machinery.gvk import Object

_TO_EVENTS: Final = {
    "involvedObject": "regarding",
    "message": "note",
    "reportingComponent": "reportingController",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
}
_TO_CORE: Final = {new: old for old, new in _TO_EVENTS.items()}
_CORE_FIELDS: Final = (
    ("involvedObject", dict),
    ("source", dict),
    ("reportingComponent", str),
    ("reportingInstance", str),
)


def convert_event(obj: Object, version: str) -> Object:
    """A copy in the other form; both have one version, so which way is told by the object's own."""
    return _to_events(obj) if obj.get("apiVersion") == "v1" else _to_core(obj)


def _to_events(obj: Object) -> Object:
    out = {_TO_EVENTS.get(key, key): value for key, value in obj.items()}
    out["apiVersion"] = "events.k8s.io/v1"
    for key in ("regarding", "deprecatedSource"):
        out.setdefault(key, {})
    for key in ("reportingController", "reportingInstance"):
        if not out.get(key):
            out.pop(key, None)
    out.setdefault("eventTime", None)
    for key in ("deprecatedFirstTimestamp", "deprecatedLastTimestamp"):
        out.setdefault(key, None)
    return out


def _to_core(obj: Object) -> Object:
    out = {_TO_CORE.get(key, key): value for key, value in obj.items()}
    out["apiVersion"] = "v1"
    for key, kind in _CORE_FIELDS:
        if out.get(key) is None:
            out[key] = kind()
    for key in ("eventTime", "firstTimestamp", "lastTimestamp"):
        out.setdefault(key, None)
    return out
