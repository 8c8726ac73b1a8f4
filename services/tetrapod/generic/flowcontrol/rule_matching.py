"""Matching of requests against the rules of a FlowSchema.

Upstream: staging/src/k8s.io/apiserver/pkg/util/flowcontrol/rule.go
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tetrapod.machinery.gvk import Object
from tetrapod.machinery.requestinfo import RequestInfo
from tetrapod.machinery.user import UserInfo

Matcher = Callable[[UserInfo, RequestInfo], bool]


def level_name(schema: Object) -> str:
    """Return the name of the priority level that a FlowSchema references, or "" if the reference is missing."""
    name: str = ((schema.get("spec") or {}).get("priorityLevelConfiguration") or {}).get("name", "")
    return name


def matcher(schema: Object) -> Matcher:
    """Return a function that returns whether a request of a user matches one of the rules of a FlowSchema."""
    rules = (schema.get("spec") or {}).get("rules") or []
    compiled = [(r.get("subjects") or [], r.get("resourceRules") or [], r.get("nonResourceRules") or []) for r in rules]

    def matches(user: UserInfo, info: RequestInfo) -> bool:
        for subjects, resource_rules, other_rules in compiled:
            if not any(_is_subject(user, subject) for subject in subjects):
                continue
            if info.is_resource_request:
                if any(_is_resource(info, rule) for rule in resource_rules):
                    return True
            elif any(_is_path(info, rule) for rule in other_rules):
                return True
        return False

    return matches


def _is_subject(user: UserInfo, subject: dict[str, Any]) -> bool:
    match subject.get("kind"):
        case "User":
            return (subject.get("user") or {}).get("name") in ("*", user.name)
        case "Group":
            name = (subject.get("group") or {}).get("name")
            return name == "*" or name in user.groups
        case "ServiceAccount":
            account = subject.get("serviceAccount") or {}
            prefix = f"system:serviceaccount:{account.get('namespace', '')}:"
            return (
                user.name.startswith(prefix)
                if account.get("name") == "*"
                else user.name == prefix + account.get("name", "")
            )
    return False


def _is_resource(info: RequestInfo, rule: dict[str, Any]) -> bool:
    resource = f"{info.resource}/{info.subresource}" if info.subresource else info.resource
    if not (
        _among(info.verb, rule.get("verbs"))
        and _among(resource, rule.get("resources"))
        and _among(info.api_group, rule.get("apiGroups"))
    ):
        return False
    return _among(info.namespace, rule.get("namespaces")) if info.namespace else bool(rule.get("clusterScope"))


def _is_path(info: RequestInfo, rule: dict[str, Any]) -> bool:
    if not _among(info.verb, rule.get("verbs")):
        return False
    for url in rule.get("nonResourceURLs") or []:
        if url in ("*", info.path):
            return True
        prefix = url.removesuffix("*")
        if info.path.startswith(prefix if prefix.endswith("/") else prefix + "/"):
            return True
    return False


def _among(value: str, accepted: Sequence[str] | None) -> bool:
    """Return whether a list of a rule contains the value or is `*`. False for an empty or missing list.

    Validation ensures that `*` is the only element.
    """
    return accepted is not None and bool(accepted) and (accepted[0] == "*" or value in accepted)
