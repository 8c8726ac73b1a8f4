"""The definitions of MutatingWebhookConfigurations and ValidatingWebhookConfigurations.

Their strategy, store, defaults, validation, warnings and table columns are the same.

Upstream: pkg/registry/admissionregistration/{mutating,validating}webhookconfiguration and
pkg/apis/admissionregistration/validation.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from tetrapod.core.admissionregistration.match_rules import (
    FAILURE_POLICIES,
    MATCH_POLICIES,
    match_conditions,
    rule,
)
from tetrapod.core.admissionregistration.policy_strategies import GROUP, StaticNames
from tetrapod.core.cells import AGE, NAME, age, name_of
from tetrapod.core.validation.names import errors_from, known
from tetrapod.generic.admission.matching import EXCLUDES_VIRTUAL, VIRTUAL
from tetrapod.generic.configuration import feature_gates
from tetrapod.generic.registry.builtin import builtin
from tetrapod.generic.registry.context import Context
from tetrapod.generic.registry.definition import ResourceDefinition
from tetrapod.generic.registry.filtered_store import FilteredStore
from tetrapod.generic.webhook.service_paths import service_path_errors
from tetrapod.machinery import field
from tetrapod.machinery.equality import repeated
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.golang.quoting import go_quote
from tetrapod.machinery.golang.urls import BadUrl, parse
from tetrapod.machinery.gvk import GroupResource, Object
from tetrapod.machinery.labels import validate_label_selector
from tetrapod.machinery.names import is_dns1035_label, is_fully_qualified_name
from tetrapod.machinery.table import Column, TableConvertor

_REVIEWS: Final = ("v1", "v1beta1")
_HARMLESS: Final = frozenset({"None", "NoneOnDryRun"})
_SIDE_EFFECTS: Final = frozenset({"Unknown", "None", "Some", "NoneOnDryRun"})
_REINVOCATION: Final = frozenset({"Never", "IfNeeded"})
_LONGEST: Final = 30


class WebhooksStrategy(StaticNames):
    """The strategy of MutatingWebhookConfigurations and ValidatingWebhookConfigurations.

    As upstream, metadata.generation also changes if an update replaces an empty field by a missing one or the reverse.
    """

    distinguishes_empty = True

    def __init__(self) -> None:
        super().__init__(
            defaults=set_defaults,
            validator=validate,
            whole_update_validator=validate_update,
            generation=("webhooks",),
            allow_unconditional_update=False,
        )

    def warnings_on_create(self, ctx: Context, obj: Object) -> list[str]:
        return [*super().warnings_on_create(ctx, obj), *warnings(obj)]

    def warnings_on_update(self, ctx: Context, new: Object, old: Object) -> list[str]:
        return [*super().warnings_on_update(ctx, new, old), *warnings(new)]


def definition(resource: str) -> ResourceDefinition:
    """Return the definition of MutatingWebhookConfigurations or ValidatingWebhookConfigurations.

    Args:
        resource: "mutatingwebhookconfigurations" or "validatingwebhookconfigurations".
    """
    return replace(builtin(GROUP, resource, WebhooksStrategy(), table=TABLE), store=WebhookStore)


class WebhookStore(FilteredStore):
    """A store that removes empty caBundles from the objects that it returns."""

    def may_contain_hidden(self, item: bytes) -> bool:
        return b'"caBundle":""' in item

    def hide(self, obj: Object) -> bool:
        empty = [
            hook["clientConfig"] for hook in obj.get("webhooks") or () if hook["clientConfig"].get("caBundle") == ""
        ]
        for config in empty:
            del config["caBundle"]
        return bool(empty)


def set_defaults(obj: Object) -> None:
    """Set the defaults of all webhooks of a configuration, which is modified.

    They are failurePolicy Fail, matchPolicy Equivalent, 10 seconds of timeout, empty selectors, port 443 of a service,
    and the scope `*` of rules. Webhooks of a MutatingWebhookConfiguration also get the reinvocationPolicy Never.
    """
    mutating = obj.get("kind") == "MutatingWebhookConfiguration"
    for hook in obj.get("webhooks") or ():
        for key, value in (("failurePolicy", "Fail"), ("matchPolicy", "Equivalent"), ("timeoutSeconds", 10)):
            if hook.get(key) is None:
                hook[key] = value
        for key in ("namespaceSelector", "objectSelector"):
            if hook.get(key) is None:
                hook[key] = {}
        if mutating and hook.get("reinvocationPolicy") is None:
            hook["reinvocationPolicy"] = "Never"
        if (service := (hook.get("clientConfig") or {}).get("service")) is not None and service.get("port") is None:
            service["port"] = 443
        for resource_rule in hook.get("rules") or ():
            if resource_rule.get("scope") is None:
                resource_rule["scope"] = "*"


def validate(obj: Object) -> list[FieldError]:
    """Validate the webhooks of a new webhook configuration.

    Names are unique and have at least three segments. A webhook must declare None or NoneOnDryRun as its side effects,
    and a review version that this server supports. Rules, selectors, match conditions and clientConfig are valid, and
    the timeout is 1 to 30 seconds.
    """
    return _validate(obj, [])


def validate_update(new: Object, old: Object) -> list[FieldError]:
    """Validate an updated webhook configuration.

    If the stored configuration has side effects, no recognized review version or duplicate names, the new one may have
    them too. Match conditions are compiled again only if one of them changed.
    """
    return _validate(new, old.get("webhooks") or [], update=True)


def _validate(obj: Object, existing: list[Object], *, update: bool = False) -> list[FieldError]:
    hooks = obj.get("webhooks") or []
    old_harmless = all(hook.get("sideEffects") in _HARMLESS for hook in existing)
    old_recognized = all(set(hook.get("admissionReviewVersions") or _REVIEWS) & set(_REVIEWS) for hook in existing)
    old_unique = len({hook.get("name") for hook in existing}) == len(existing)
    conditions_kept = update and [h.get("matchConditions") for h in hooks] == [
        h.get("matchConditions") for h in existing
    ]
    errors: list[FieldError] = []
    seen: set[str] = set()
    for i, hook in enumerate(hooks):
        path, name = f"webhooks[{i}]", hook.get("name") or ""
        errors += _hook(hook, path, _HARMLESS if old_harmless else _SIDE_EFFECTS)
        if not conditions_kept:
            errors += match_conditions(hook.get("matchConditions") or [], f"{path}.matchConditions")
        errors += _review_versions(
            hook.get("admissionReviewVersions") or [], f"{path}.admissionReviewVersions", old_recognized
        )
        if old_unique and name and name in seen:
            errors.append(field.duplicate(f"{path}.name", name))
        seen.add(name)
    return errors


def _hook(hook: Object, path: str, side_effects: frozenset[str]) -> list[FieldError]:
    name = hook.get("name") or ""
    errors = errors_from(is_fully_qualified_name, name, f"{path}.name") if name else [field.required(f"{path}.name")]
    for i, hook_rule in enumerate(hook.get("rules") or ()):
        errors += rule(hook_rule, f"{path}.rules[{i}]")
    for key, allowed in (("failurePolicy", FAILURE_POLICIES), ("matchPolicy", MATCH_POLICIES)):
        if (value := hook.get(key)) is not None:
            errors += known(value, allowed, f"{path}.{key}")
    if (effects := hook.get("sideEffects")) is None:
        errors.append(field.required(f"{path}.sideEffects", f"must specify one of {', '.join(sorted(side_effects))}"))
    else:
        errors += known(effects, side_effects, f"{path}.sideEffects")
    if (seconds := hook.get("timeoutSeconds")) is not None and not 1 <= seconds <= _LONGEST:
        errors.append(
            field.invalid(f"{path}.timeoutSeconds", seconds, "the timeout value must be between 1 and 30 seconds")
        )
    for key in ("namespaceSelector", "objectSelector"):
        errors += validate_label_selector(hook.get(key), f"{path}.{key}")
    if (policy := hook.get("reinvocationPolicy")) is not None:
        errors += known(policy, _REINVOCATION, f"{path}.reinvocationPolicy")
    return errors + _client_config(hook.get("clientConfig") or {}, f"{path}.clientConfig")


def _client_config(config: Object, path: str) -> list[FieldError]:
    url, service = config.get("url"), config.get("service")
    if (url is None) == (service is None):
        return [field.required(path, "exactly one of url or service is required")]
    return _service(service, f"{path}.service") if url is None else _url(url, f"{path}.url")


def _url(url: str, path: str) -> list[FieldError]:
    form = "; desired format: https://host[/path]"
    try:
        parts = parse(url)
    except BadUrl as error:
        return [field.required(path, f"url must be a valid URL: parse {go_quote(url)}: {error}{form}")]
    errors: list[FieldError] = []
    if parts.scheme != "https":
        errors.append(field.invalid(path, parts.scheme, f"'https' is the only allowed URL scheme{form}"))
    if not parts.host:
        errors.append(field.invalid(path, parts.host, f"host must be specified{form}"))
    if parts.user:
        errors.append(field.invalid(path, parts.user, "user information is not permitted in the URL"))
    for value, text in ((parts.fragment, "fragments"), (parts.query, "query parameters")):
        if value:
            errors.append(field.invalid(path, value, f"{text} are not permitted in the URL"))
    return errors


def _service(service: Any, path: str) -> list[FieldError]:
    # Upstream passes name and namespace in the wrong order, so it reports the wrong one of them as missing.
    missing = (("name", "namespace"), ("namespace", "name"))
    errors = [field.required(f"{path}.{blamed}") for blamed, key in missing if not service.get(key)]
    port = service.get("port")
    if port is not None and not 1 <= port <= 65535:
        errors.append(field.invalid(f"{path}.port", port, "port is not valid: must be between 1 and 65535, inclusive"))
    return errors + service_path_errors(service.get("path"), f"{path}.path")


def _review_versions(versions: list[str], path: str, recognized: bool) -> list[FieldError]:
    if not versions:
        return [field.required(path, f"must specify one of {', '.join(_REVIEWS)}")]
    errors: list[FieldError] = []
    repeated_indexes = repeated(versions)
    for i, version in enumerate(versions):
        if i in repeated_indexes:
            errors.append(field.invalid(f"{path}[{i}]", version, "duplicate version"))
        else:
            errors += errors_from(is_dns1035_label, version, f"{path}[{i}]")
    if recognized and not set(versions) & set(_REVIEWS):
        errors.append(field.invalid(path, versions, f"must include at least one of {', '.join(_REVIEWS)}"))
    return errors


def warnings(obj: Object) -> list[str]:
    """Return a warning for each resource in a rule that is excluded from admission webhooks, such as tokenreviews.

    Upstream: warnings.go.
    """
    if not feature_gates.enabled(EXCLUDES_VIRTUAL):
        return []
    return [
        f"webhooks[{i}].rules[{j}]: {named} is excluded from admission webhooks; this rule will have no effect"
        for i, hook in enumerate(obj.get("webhooks") or ())
        for j, hook_rule in enumerate(hook.get("rules") or ())
        for named in _excluded(hook_rule)
    ]


def _excluded(given: Object) -> list[GroupResource]:
    groups, resources = given.get("apiGroups") or (), given.get("resources") or ()
    if "*" in groups or "*" in resources:
        return []
    return [
        named for named in dict.fromkeys(GroupResource(g, r) for g in groups for r in resources) if named in VIRTUAL
    ]


def _row(obj: Object) -> list[Any]:
    return [name_of(obj), len(obj.get("webhooks") or []), age(obj)]


TABLE: Final = TableConvertor((NAME, Column("Webhooks", "integer"), AGE), _row)
