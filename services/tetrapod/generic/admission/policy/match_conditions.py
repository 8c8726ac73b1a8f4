"""matchConditions of policies and webhooks.

Upstream: staging/src/k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions/matcher.go
"""

from __future__ import annotations

from collections.abc import Sequence

from tetrapod.generic.admission.policy.evaluation import Activation, BudgetExceeded
from tetrapod.generic.admission.policy.expressions import BOOL, Compiled, Composer
from tetrapod.machinery.cel.environment import MATCH_CONDITIONS_BUDGET
from tetrapod.machinery.error_aggregate import aggregate_errors
from tetrapod.machinery.gvk import Object


class MatchConditionError(Exception):
    """Match conditions cannot be evaluated, and none is false. The caller applies its failurePolicy."""


def compile_conditions(composer: Composer, conditions: Sequence[Object]) -> list[Compiled]:
    """Compile matchConditions by `composer`, in order. Errors are in the results, not raised."""
    return [composer.compile(condition["expression"], BOOL) for condition in conditions]


async def match(conditions: Sequence[Compiled], activation: Activation) -> bool:
    """Return whether all match conditions are true for the request of `activation`, which evaluates them.

    If one is false, the result is False, even if others fail. Without conditions it is True.

    Raises:
        MatchConditionError: none is false and some fail, or the cost budget is exhausted; with upstream's text.
        StatusError: 503, an authorization check in a condition could not be decided.
    """
    if not conditions:
        return True
    try:
        outcomes, _ = await activation.all(conditions, MATCH_CONDITIONS_BUDGET)
    except BudgetExceeded as error:
        raise MatchConditionError(str(error)) from None
    if any(not outcome.error and outcome.value is False for outcome in outcomes):
        return False
    if errors := [outcome.error for outcome in outcomes if outcome.error]:
        raise MatchConditionError(aggregate_errors(errors))
    return True
