"""Defaults of CustomResourceDefinitions. Upstream: apiextensions-apiserver/pkg/apis/apiextensions/v1/defaults.go."""

from __future__ import annotations

from tetrapod.machinery.gvk import Object


def set_defaults(obj: Object) -> None:
    """Set the defaults of a definition in place.

    They are the singular and list kind, the conversion strategy, the port of the conversion webhook, and
    status.storedVersions.
    """
    spec = obj.get("spec") or {}
    names = spec.get("names") or {}
    kind = names.get("kind") or ""
    if not names.get("singular") and kind:
        names["singular"] = kind.lower()
    if not names.get("listKind") and kind:
        names["listKind"] = f"{kind}List"
    if spec.get("conversion") is None:
        spec["conversion"] = {"strategy": "None"}
    service = ((spec["conversion"].get("webhook") or {}).get("clientConfig") or {}).get("service")
    if service is not None and service.get("port") is None:
        service["port"] = 443
    status = obj.get("status")
    if isinstance(status, dict) and not status.get("storedVersions"):
        stored = next((v["name"] for v in spec.get("versions") or () if v.get("storage")), None)
        if stored:
            status["storedVersions"] = [stored]
