"""The plugin ValidatingAdmissionPolicy: rejects requests, warns, and annotates audit events by CEL expressions.

Upstream: staging/src/k8s.io/apiserver/pkg/admission/plugin/policy/validating/dispatcher.go
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from tetrapod.generic.admission.interface import Attributes, forbidden
from tetrapod.generic.admission.plugin_dependencies import PluginDependencies
from tetrapod.generic.admission.policy.definitions import Binding, Policy, policy_storage
from tetrapod.generic.admission.policy.metrics import error_type, validated
from tetrapod.generic.admission.policy.plugin import Invocation, Misconfigured, PolicyPlugin, with_causes
from tetrapod.generic.admission.policy.source import Hook, PolicySource
from tetrapod.generic.observability.tracing.spans import traced
from tetrapod.generic.scheduling.yield_timer import YieldTimer
from tetrapod.machinery.gvk import GroupVersionKind, Object
from tetrapod.machinery.status import StatusError

if TYPE_CHECKING:
    from tetrapod.generic.admission.policy.authorizer_variable import AuthorizerVariables
    from tetrapod.generic.admission.policy.validator import Validator, Verdict

_POLICIES: Final = policy_storage("validatingadmissionpolicies", "ValidatingAdmissionPolicy")
_BINDINGS: Final = policy_storage("validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding")
_FAILURES: Final = "validation.policy.admission.k8s.io/validation_failure"
_MOST_FAILURES: Final = 50
_LONGEST_ANNOTATION: Final = 10 * 1024
_CODES: Final = {"Forbidden": 403, "Unauthorized": 401, "RequestEntityTooLarge": 413, "Invalid": 422}


def _compile(policy: Policy) -> Validator:
    from tetrapod.generic.admission.policy.validator import Validator

    return Validator(policy)


@dataclass(slots=True)
class _Denial:
    policy: str
    binding: str
    message: str
    reason: str = ""


@dataclass(slots=True)
class _Request:
    """The state of one request, collected over all policies.

    Attributes:
        attributes: the request.
        authorizer_variables: the values of the CEL variables for authorization checks.
        namespace: the Namespace object; None for cluster-scoped objects.
        objects: pairs of the new and the old object, by the kind to which both were converted.
        denials: the failed validations that reject the request.
        failures: the failed validations to record in the audit event.
        timer: lets other tasks run between two bindings if the evaluation has taken several milliseconds.
    """

    attributes: Attributes
    authorizer_variables: AuthorizerVariables
    namespace: Object | None = None
    objects: dict[GroupVersionKind, tuple[Any, Any]] = field(default_factory=dict)
    denials: list[_Denial] = field(default_factory=list)
    failures: list[Object] = field(default_factory=list)
    timer: YieldTimer = field(default_factory=YieldTimer)


class ValidatingAdmissionPolicy(PolicyPlugin["Validator"]):
    """The plugin ValidatingAdmissionPolicy, which rejects requests, warns, and annotates by CEL expressions."""

    name = "ValidatingAdmissionPolicy"

    def __init__(self, dependencies: PluginDependencies) -> None:
        source = PolicySource(dependencies.storages, dependencies.background, _POLICIES, _BINDINGS, _compile)
        super().__init__(dependencies, source)

    async def validate(self, attributes: Attributes) -> None:
        hooks = await self.hooks(attributes)
        if not hooks:
            return
        from tetrapod.generic.admission.policy.authorizer_variable import AuthorizerVariables

        request = _Request(attributes, AuthorizerVariables(self.dependencies.authorizer, attributes))
        for hook in hooks:
            await self._apply(hook, request)
        if request.failures:
            attributes.annotate(_FAILURES, _go_json(request.failures[:_MOST_FAILURES]))
        if request.denials:
            raise _denial_error(attributes, request.denials[0])

    @traced(lambda _, hook, __: f"policy {hook.policy.name}", detailed=True)
    async def _apply(self, hook: Hook[Validator], request: _Request) -> None:
        annotations: dict[str, list[str]] = {}
        async for invocation in self.invocations(hook, request.attributes):
            if isinstance(invocation, Misconfigured):
                _deny_misconfigured(invocation, request)
                continue
            try:
                bindings = await self._bindings(invocation, request)
            except ValueError as error:
                text = f"failed to convert object version: {error}"
                _deny_misconfigured(Misconfigured(invocation.policy, invocation.binding, text), request)
                continue
            await request.timer.yield_if_due()
            verdict = await invocation.evaluator.validate(
                bindings, request.authorizer_variables, large=request.attributes.large
            )
            _take(verdict, invocation.policy, invocation.binding, request)
            _annotate(verdict, invocation.policy, invocation.binding, request, annotations)
        for key, values in annotations.items():
            request.attributes.annotate(f"{hook.policy.name}/{key}", ", ".join(values))

    async def _bindings(self, invocation: Invocation[Validator], request: _Request) -> dict[str, Any]:
        from tetrapod.generic.admission.request import admission_request, namespace_object

        attributes, kind = request.attributes, invocation.matched_kind.kind
        if kind not in request.objects:
            request.objects[kind] = (
                await _convert(attributes, attributes.object, kind),
                await _convert(attributes, attributes.old_object, kind),
            )
        if request.namespace is None:
            request.namespace = await self.namespace_of(attributes)
        new, old = request.objects[kind]
        return {
            "object": new,
            "oldObject": old,
            "params": invocation.param,
            "request": admission_request(attributes, invocation.matched_kind),
            "namespaceObject": namespace_object(request.namespace),
        }


async def _convert(attributes: Attributes, obj: Object | None, kind: GroupVersionKind) -> Object | None:
    if obj is None or attributes.versions is None:
        return obj
    return await attributes.versions.convert(obj, kind, large=attributes.large)


def _deny_misconfigured(match: Misconfigured, request: _Request) -> None:
    if not match.policy.fails:
        return
    subject = "policy" if match.binding is None else "binding"
    name = "" if match.binding is None else match.binding.name
    request.denials.append(_Denial(match.policy.name, name, f"failed to configure {subject}: {match.error}"))


def _take(verdict: Verdict, policy: Policy, binding: Binding, request: _Request) -> None:
    """Apply the actions of a binding (Deny, Warn, Audit) to each failed validation of a policy, and record the metrics.

    Args:
        verdict: the results of the policy's validations.
        policy: the policy.
        binding: the binding with the actions.
        request: the state of the request, to which denials, warnings and failures to audit are added.
    """
    for i, decision in enumerate(verdict.decisions):
        if not decision.denies:
            if decision.failed:
                validated(policy.name, binding.name, error_type(decision.message), "allow", decision.seconds)
            continue
        for action in binding.actions:
            validated(policy.name, binding.name, error_type(decision.message), action.lower(), decision.seconds)
            if action == "Deny":
                request.denials.append(_Denial(policy.name, binding.name, decision.message, decision.reason))
            elif action == "Warn":
                text = (
                    f"Validation failed for ValidatingAdmissionPolicy '{policy.name}' "
                    f"with binding '{binding.name}': {decision.message}"
                )
                request.attributes.warnings.append(text)
            elif action == "Audit":
                failure = {
                    "message": decision.message,
                    "policy": binding.policy,
                    "binding": binding.name,
                    "expressionIndex": i,
                }
                request.failures.append({**failure, "validationActions": binding.actions})


def _annotate(
    verdict: Verdict, policy: Policy, binding: Binding, request: _Request, annotations: dict[str, list[str]]
) -> None:
    for annotation in verdict.annotations:
        if annotation.error:
            request.denials.append(_Denial(policy.name, binding.name, annotation.error))
            validated(policy.name, binding.name, error_type(annotation.error), "deny", annotation.seconds)
            continue
        values = annotations.setdefault(annotation.key, [])
        value = annotation.value.encode()[:_LONGEST_ANNOTATION].decode(errors="ignore")
        if value not in values:
            values.append(value)


def _go_json(value: Any) -> str:
    """Return JSON as Go writes it, with the characters &, < and > escaped."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _denial_error(attributes: Attributes, denial: _Denial) -> StatusError:
    by = f" with binding '{denial.binding}'" if denial.binding else ""
    text = f"ValidatingAdmissionPolicy '{denial.policy}'{by} denied request: {denial.message}"
    error = forbidden(attributes, text)
    error.reason = denial.reason or "Invalid"
    error.code = _CODES.get(error.reason, 422)
    return with_causes(error, [text])
