"""matchConditions of webhooks. Importing this module imports CEL.

Upstream: staging/src/k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions/matcher.go; the end of
ShouldCallHook
"""

from __future__ import annotations

import time
from typing import Final

from tetrapod.generic.admission.interface import Attributes, Equivalent
from tetrapod.generic.admission.policy.authorizer_variable import AuthorizerVariables
from tetrapod.generic.admission.policy.evaluation import Activation
from tetrapod.generic.admission.policy.expressions import Composer
from tetrapod.generic.admission.policy.match_conditions import MatchConditionError, compile_conditions, match
from tetrapod.generic.admission.request import admission_request
from tetrapod.generic.admission.webhook.hooks import Hook
from tetrapod.generic.authorization.interface import Authorizer
from tetrapod.generic.metrics.counters import Counter
from tetrapod.generic.metrics.histograms import Histogram
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.status import forbidden

_LABELS: Final = ("name", "kind", "type", "operation")
_ERRORS: Final = Counter(
    "apiserver_admission_match_condition_evaluation_errors_total",
    "Admission match condition evaluation errors count, identified by name of resource containing the match "
    "condition and broken out for each kind containing matchConditions (webhook or policy), operation and admission "
    "type (validate or admit).",
    _LABELS,
)
_EXCLUSIONS: Final = Counter(
    "apiserver_admission_match_condition_exclusions_total",
    "Admission match condition evaluation exclusions count, identified by name of resource containing the match "
    "condition and broken out for each kind containing matchConditions (webhook or policy), operation and admission "
    "type (validate or admit).",
    _LABELS,
)
_SECONDS: Final = Histogram(
    "apiserver_admission_match_condition_evaluation_seconds",
    "Admission match condition evaluation time in seconds, identified by name and broken out for each kind "
    "containing matchConditions (webhook or policy), operation and type (validate or admit).",
    _LABELS,
    (0.001, 0.005, 0.01, 0.025, 0.1, 0.2, 0.25),
)


async def conditions_match(
    hook: Hook,
    phase: str,
    attributes: Attributes,
    matched_kind: Equivalent,
    new: Object | None,
    old: Object | None,
    authorizer: Authorizer,
) -> bool:
    """Return whether the match conditions of a webhook hold, and record that in the metrics.

    If they cannot be evaluated and the webhook's failurePolicy is Ignore, the result is False.

    Args:
        hook: its conditions are compiled at the first call.
        phase: "admit" or "validating", for the metrics.
        attributes: the request.
        matched_kind: the resource and kind in which the webhook matched the request.
        new: the new object as the webhook's kind.
        old: the stored object as the webhook's kind.
        authorizer: decides for the variable `authorizer` of the conditions.

    Raises:
        StatusError: 403 if the conditions cannot be evaluated and the failurePolicy is Fail; 503 if an authorization
            check in a condition could not be decided.
    """
    if hook.compiled is None:
        hook.compiled = compile_conditions(Composer(params=False, composed=False), hook.match_conditions)
    bindings = {
        "object": new,
        "oldObject": old,
        "request": admission_request(attributes, matched_kind),
        "namespaceObject": None,
    }
    labels, start = (hook.name, "webhook", phase, attributes.operation), time.perf_counter()
    try:
        activation = Activation(bindings, {}, AuthorizerVariables(authorizer, attributes), large=attributes.large)
        matches = await match(hook.compiled, activation)
    except MatchConditionError as error:
        _ERRORS.add(labels)
        if not hook.ignores_failure:
            raise forbidden(attributes.resource.group_resource, attributes.name, str(error)) from None
        matches = False
    finally:
        _SECONDS.observe(labels, time.perf_counter() - start)
    if not matches:
        _EXCLUSIONS.add(labels)
    return matches
