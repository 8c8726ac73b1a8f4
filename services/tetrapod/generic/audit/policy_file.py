"""The file of `--audit-policy-file`: an audit.k8s.io/v1 Policy.

It is validated with upstream's error texts before the server starts. Unknown and duplicate fields are logged and
ignored, as by upstream's fallback to lenient decoding.
Upstream: k8s.io/apiserver/pkg/audit/policy/reader.go, pkg/apis/audit/validation/validation.go.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

from tetrapod.generic.audit.policy import LEVELS, STAGES, Auditing, GroupResources, Level, Policy, Rule
from tetrapod.machinery.error_aggregate import aggregate_errors
from tetrapod.machinery.field import FieldError, invalid, not_supported, required
from tetrapod.machinery.golang.quoting import go_quote
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.names import is_dns1123_subdomain
from tetrapod.machinery.schema import decode as typed
from tetrapod.machinery.schema_node import SchemaNode
from tetrapod.machinery.serializer import yaml
from tetrapod.machinery.serializer.errors import DecodeError
from tetrapod.machinery.serializer.type_meta import recognize
from tetrapod.machinery.types import load

log = logging.getLogger(__name__)

_API_VERSION: Final = "audit.k8s.io/v1"
_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
_KINDS: Final = ("Policy", "PolicyList", "Event", "EventList")
_SCHEME: Final = '"pkg/runtime/scheme.go:111"'
_BOTH: Final = "rules cannot apply to both regular resources and non-resource URLs"


class PolicyError(ValueError):
    """A policy file that is invalid or cannot be read."""


def read_policy(path: str) -> Policy:
    """Read and validate a policy file.

    Raises:
        PolicyError: the file cannot be read or decoded, or does not pass validation; with upstream's text.
    """
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        reason = (error.strerror or "").lower()
        raise PolicyError(
            f"loading audit policy file: failed to read file path {go_quote(path)}: open {path}: {reason}"
        ) from None
    try:
        return parse_policy(data)
    except PolicyError as error:
        raise PolicyError(f"loading audit policy file: {error}: from file {path}") from None


def parse_policy(data: bytes) -> Policy:
    """Parse and validate a policy in YAML or JSON. Unknown and duplicate fields are only logged.

    Raises:
        PolicyError: the policy cannot be decoded, does not pass validation or has no rules; with upstream's text.
    """
    try:
        decoded = yaml.decode(data)
        obj, api_version, kind = recognize(decoded.obj)
        _check_kind(api_version, kind)
        unknown = typed.decode(_policy_node(), obj)
    except (DecodeError, typed.DecodeError) as error:
        raise PolicyError(f"failed decoding: {error}") from None
    strict_errors = [*decoded.duplicates, *(f'unknown field "{path}"' for path in unknown)]
    if strict_errors:
        text = ", ".join(strict_errors)
        log.warning("Audit policy contains errors, falling back to lenient decoding: strict decoding error: %s", text)
    errors = _validate(obj)
    if errors:
        raise PolicyError(aggregate_errors(errors))
    if not obj.get("rules"):
        raise PolicyError("loaded illegal policy with 0 rules")
    return policy_of(obj)


def _check_kind(api_version: str, kind: str) -> None:
    kind = kind or "Policy"
    if not api_version:
        raise PolicyError(f"unknown group version field audit.k8s.io/__internal, Kind={kind} in policy")
    if api_version != _API_VERSION or kind not in _KINDS:
        raise DecodeError(
            f"no kind {go_quote(kind)} is registered for version {go_quote(api_version)} in scheme {_SCHEME}"
        )
    if kind != "Policy":
        raise DecodeError(f"converting (v1.{kind}) to (audit.Policy): unknown conversion")


# --- types


def _leaf(type_: str, presence: str = "") -> SchemaNode:
    node = SchemaNode(type_)
    node.presence = presence
    return node


def _list(items: SchemaNode) -> SchemaNode:
    node = SchemaNode("array")
    node.items = items
    return node


def _struct(name: str, **properties: SchemaNode) -> SchemaNode:
    node = SchemaNode("object")
    node.definition, node.properties = f"audit.v1.{name}", properties
    return node


@cache
def _policy_node() -> SchemaNode:
    text, texts = _leaf("string"), _list(_leaf("string"))
    group_resources = _struct("GroupResources", group=text, resources=texts, resourceNames=texts)
    rule = _struct(
        "PolicyRule",
        level=text,
        users=texts,
        userGroups=texts,
        verbs=texts,
        resources=_list(group_resources),
        namespaces=texts,
        nonResourceURLs=texts,
        omitStages=texts,
        omitManagedFields=_leaf("boolean", "*"),
    )
    return _struct(
        "Policy",
        kind=text,
        apiVersion=text,
        metadata=load(_META),
        rules=_list(rule),
        omitStages=texts,
        omitManagedFields=_leaf("boolean"),
    )


# --- validation


def _validate(policy: Object) -> list[FieldError]:
    errors = _stage_errors(policy.get("omitStages") or (), "omitStages")
    for i, rule in enumerate(policy.get("rules") or ()):
        errors += _rule_errors(rule, f"rules[{i}]")
    return errors


def _rule_errors(rule: Object, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    level = rule.get("level") or ""
    if not level:
        errors.append(required(f"{path}.level"))
    elif level not in LEVELS:
        errors.append(not_supported(f"{path}.level", level, list(LEVELS)))
    urls = rule.get("nonResourceURLs") or []
    errors += _url_errors(urls, f"{path}.nonResourceURLs")
    errors += _resource_errors(rule.get("resources") or (), f"{path}.resources")
    errors += _stage_errors(rule.get("omitStages") or (), f"{path}.omitStages")
    if urls and (rule.get("resources") or rule.get("namespaces")):
        errors.append(invalid(f"{path}.nonResourceURLs", urls, _BOTH))
    return errors


def _url_errors(urls: Sequence[str], path: str) -> list[FieldError]:
    errors = []
    for i, url in enumerate(urls):
        if url == "*":
            continue
        if not url.startswith("/"):
            errors.append(invalid(f"{path}[{i}]", url, "non-resource URL rules must begin with a '/' character"))
        if "*" in url[:-1]:
            errors.append(
                invalid(f"{path}[{i}]", url, "non-resource URL wildcards '*' must be the final character of the rule")
            )
    return errors


def _resource_errors(group_resources: Sequence[Object], path: str) -> list[FieldError]:
    errors = []
    for resources in group_resources:
        group = resources.get("group") or ""
        if group not in ("", "*") and (problems := is_dns1123_subdomain(group)):
            errors.append(invalid(f"{path}.group", group, ",".join(problems)))
        if resources.get("resourceNames") and not resources.get("resources"):
            errors.append(
                invalid(
                    f"{path}.resourceNames",
                    resources["resourceNames"],
                    "using resourceNames requires at least one resource",
                )
            )
    return errors


def _stage_errors(stages: Sequence[str], path: str) -> list[FieldError]:
    text = f"allowed stages are {','.join(STAGES)}"
    return [invalid(f"{path}[{i}]", stage, text) for i, stage in enumerate(stages) if stage not in STAGES]


# --- conversion


def policy_of(obj: Object) -> Policy:
    """Convert a validated audit.k8s.io/v1 Policy object to a `Policy`.

    The policy's own omitStages and omitManagedFields are combined with those of each rule.
    """
    stages = frozenset(obj.get("omitStages") or ())
    omits = bool(obj.get("omitManagedFields"))
    return Policy([_rule(rule, stages, omits) for rule in obj["rules"]], Auditing(Level.NONE, stages, omits))


def _rule(rule: Object, stages: frozenset[str], omits: bool) -> Rule:
    def strings(name: str) -> Any:
        return rule.get(name) or ()

    own = rule.get("omitManagedFields")
    resources = tuple(
        GroupResources(
            entry.get("group") or "", tuple(entry.get("resources") or ()), tuple(entry.get("resourceNames") or ())
        )
        for entry in strings("resources")
    )
    return Rule(
        Auditing(LEVELS[rule["level"]], stages | frozenset(strings("omitStages")), omits if own is None else own),
        frozenset(strings("users")),
        frozenset(strings("userGroups")),
        frozenset(strings("verbs")),
        resources,
        frozenset(strings("namespaces")),
        tuple(strings("nonResourceURLs")),
    )
