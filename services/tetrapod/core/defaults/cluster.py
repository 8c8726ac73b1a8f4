"""Defaults of the other kinds of core/v1, and of admission registration, scheduling and flow control."""

from __future__ import annotations

from tetrapod.machinery.gvk import Object


def default_webhooks(obj: Object) -> None:
    """Set the defaults of a webhook configuration. Only the mutating one has a reinvocationPolicy."""
    mutating = obj.get("kind") == "MutatingWebhookConfiguration"
    for hook in obj.get("webhooks") or ():
        for field, value in (("failurePolicy", "Fail"), ("matchPolicy", "Equivalent"), ("timeoutSeconds", 10)):
            if hook.get(field) is None:
                hook[field] = value
        for field in ("namespaceSelector", "objectSelector"):
            if hook.get(field) is None:
                hook[field] = {}
        if mutating and hook.get("reinvocationPolicy") is None:
            hook["reinvocationPolicy"] = "Never"
        if (service := (hook.get("clientConfig") or {}).get("service")) is not None and service.get("port") is None:
            service["port"] = 443
        for rule in hook.get("rules") or ():
            if rule.get("scope") is None:
                rule["scope"] = "*"


def default_admission_policy(obj: Object) -> None:
    """Set the defaults of a mutating or validating admission policy."""
    spec = obj.setdefault("spec", {})
    if spec.get("failurePolicy") is None:
        spec["failurePolicy"] = "Fail"
    if (match := spec.get("matchConstraints")) is not None:
        default_match_resources(match)


def default_admission_policy_binding(obj: Object) -> None:
    """Set the defaults of a binding of an admission policy."""
    spec = obj.setdefault("spec", {})
    if (match := spec.get("matchResources")) is not None:
        default_match_resources(match)


def default_match_resources(match: Object) -> None:
    """Set the defaults of MatchResources."""
    if match.get("matchPolicy") is None:
        match["matchPolicy"] = "Equivalent"
    for field in ("namespaceSelector", "objectSelector"):
        if match.get(field) is None:
            match[field] = {}
    for rule in [*(match.get("resourceRules") or ()), *(match.get("excludeResourceRules") or ())]:
        if rule.get("scope") is None:
            rule["scope"] = "*"
