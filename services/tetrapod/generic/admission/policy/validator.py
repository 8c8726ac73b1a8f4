"""`Validator`: one compiled ValidatingAdmissionPolicy, and its decisions about a request.

Upstream: staging/src/k8s.io/apiserver/pkg/admission/plugin/policy/validating/validator.go, plugin.go (compilePolicy)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from tetrapod.generic.admission.policy import match_conditions
from tetrapod.generic.admission.policy.authorizer_variable import AuthorizerVariables
from tetrapod.generic.admission.policy.definitions import Policy
from tetrapod.generic.admission.policy.evaluation import Activation, BudgetExceeded, Outcome
from tetrapod.generic.admission.policy.expressions import BOOL, STRING, STRING_OR_NULL, Compiled, Composer
from tetrapod.generic.admission.policy.match_conditions import MatchConditionError
from tetrapod.machinery.cel.environment import RUNTIME_BUDGET
from tetrapod.machinery.gvk import Object

_LONGEST_MESSAGE: Final = 5 * 1024


@dataclass(frozen=True, slots=True)
class Decision:
    """The result of one validation of a policy.

    Attributes:
        denies: whether the actions of the binding apply to the request.
        message: the message of a denial, or the error text.
        reason: the reason of the Status; "" means Invalid.
        seconds: the evaluation time in seconds.
        failed: whether the expression could not be evaluated. `denies` then follows from the failurePolicy.
    """

    denies: bool
    message: str = ""
    reason: str = ""
    seconds: float = 0.0
    failed: bool = False


@dataclass(frozen=True, slots=True)
class AuditAnnotation:
    """The result of one auditAnnotation of a policy.

    Attributes:
        key: its key.
        value: its value; "" if the expression failed.
        error: the error text of the expression; "" if it has a value.
        seconds: the evaluation time in seconds if the expression failed, else 0.
    """

    key: str
    value: str = ""
    error: str = ""
    seconds: float = 0.0


@dataclass(slots=True)
class Verdict:
    """The results of a policy for one request.

    Attributes:
        decisions: a decision for each validation, in order. It is a single one for the whole policy if the match
            conditions cannot be evaluated or the cost budget is exceeded.
        annotations: those of the auditAnnotations that have a value or failed.
    """

    decisions: list[Decision] = field(default_factory=list)
    annotations: list[AuditAnnotation] = field(default_factory=list)


class Validator:
    """One compiled ValidatingAdmissionPolicy.

    Expressions that cannot be evaluated reject the request if `policy.fails`, else they are ignored.
    """

    def __init__(self, policy: Policy) -> None:
        spec = policy.spec
        self._policy = policy
        self._validations: list[Object] = spec.get("validations") or []
        self._annotations: list[Object] = spec.get("auditAnnotations") or []
        composer = Composer(params=policy.param_kind is not None)
        for variable in spec.get("variables") or ():
            composer.variable(variable["name"], variable["expression"])
        self._variables = composer.variables
        self._conditions = match_conditions.compile_conditions(composer, spec.get("matchConditions") or ())
        self._rules = [composer.compile(v["expression"], BOOL) for v in self._validations]
        self._messages: list[Compiled | None] = [
            composer.compile(text, STRING, authorizer=False) if (text := v.get("messageExpression")) else None
            for v in self._validations
        ]
        self._values = [composer.compile(a["valueExpression"], STRING_OR_NULL) for a in self._annotations]

    async def validate(
        self, bindings: Mapping[str, Any], authorizer_variables: AuthorizerVariables, *, large: bool
    ) -> Verdict:
        """Evaluate the policy. The verdict is empty if its match conditions do not hold.

        Args:
            bindings: the values of the variables `request`, `object`, `oldObject`, `params` and `namespaceObject`.
            authorizer_variables: the variables for authorization checks.
            large: whether to evaluate all expressions in a thread, because the objects are large.

        Raises:
            StatusError: 503, an authorization check in an expression could not be decided.
        """
        activation = partial(Activation, variables=self._variables, large=large)
        try:
            # Upstream's match conditions have no namespaceObject.
            if not await match_conditions.match(
                self._conditions,
                activation({**bindings, "namespaceObject": None}, authorizer_variables=authorizer_variables),
            ):
                return Verdict()
            rules = activation(bindings, authorizer_variables=authorizer_variables)
            outcomes, left = await rules.all(self._rules, RUNTIME_BUDGET)
        except (MatchConditionError, BudgetExceeded) as error:
            return self._error(str(error))
        messages = activation(bindings, authorizer_variables=None)
        verdict = Verdict(await self._decisions(outcomes, messages, left))
        try:
            annotations = activation(bindings, authorizer_variables=authorizer_variables)
            values, _ = await annotations.all(self._values, RUNTIME_BUDGET)
        except BudgetExceeded as error:
            return self._error(str(error))
        verdict.annotations = [a for i, value in enumerate(values) if (a := self._annotation(i, value)) is not None]
        return verdict

    def _error(self, text: str) -> Verdict:
        return Verdict([Decision(self._policy.fails, text, failed=True)])

    async def _decisions(self, outcomes: Sequence[Outcome], activation: Activation, left: int) -> list[Decision]:
        over = ""
        messages: list[Outcome] = []
        if any(self._messages):
            try:
                messages, _ = await activation.all(self._messages, left)
            except BudgetExceeded as error:
                over = f"failed messageExpression: {error}"
        decisions = []
        for i, outcome in enumerate(outcomes):
            if outcome.error or over:
                decisions.append(
                    Decision(self._policy.fails, outcome.error or over, seconds=outcome.seconds, failed=True)
                )
            elif outcome.value is True:
                decisions.append(Decision(False))
            else:
                validation = self._validations[i]
                computed = messages[i].value if messages else None
                reason = validation.get("reason") or "Invalid"
                decisions.append(Decision(True, _message(validation, computed), reason, outcome.seconds))
        return decisions

    def _annotation(self, i: int, outcome: Outcome) -> AuditAnnotation | None:
        key = self._annotations[i]["key"]
        if outcome.error:
            return AuditAnnotation(key, error=outcome.error, seconds=outcome.seconds) if self._policy.fails else None
        value = outcome.value.strip() if isinstance(outcome.value, str) else ""
        return AuditAnnotation(key, value) if value else None


def _message(validation: Object, computed: Any) -> str:
    """Return the message of a failed validation.

    It is the computed one if that is usable, else the configured one, else `failed expression: ` and the expression.

    Args:
        validation: an entry of spec.validations.
        computed: the value of its messageExpression, or None. It is not usable if it is not a string, is empty, is
            longer than 5 KiB or has several lines.
    """
    text = computed.strip() if isinstance(computed, str) else ""
    if len(text.encode()) > _LONGEST_MESSAGE or "\n" in text:
        text = ""
    return text or (validation.get("message") or "").strip() or f"failed expression: {validation['expression'].strip()}"
