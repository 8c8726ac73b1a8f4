"""`Mutator`: one compiled MutatingAdmissionPolicy.

Upstream: staging/src/k8s.io/apiserver/pkg/admission/plugin/policy/mutating/compilation.go, patch/
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from tetrapod.generic.admission.policy import match_conditions
from tetrapod.generic.admission.policy.authorizer_variable import AuthorizerVariables
from tetrapod.generic.admission.policy.definitions import Policy
from tetrapod.generic.admission.policy.evaluation import Activation, BudgetExceeded
from tetrapod.generic.admission.policy.expressions import APPLY_CONFIGURATION, JSON_PATCH, Compiled, Composer
from tetrapod.generic.admission.policy.patches import MutationError, apply_configuration, json_patch
from tetrapod.generic.scheduling.offload import offloaded
from tetrapod.machinery.cel.environment import RUNTIME_BUDGET
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.schema_node import SchemaNode


class Mutation(NamedTuple):
    """One compiled mutation of a policy.

    Attributes:
        compiled: the expression.
        patches: whether its value is a JSON patch instead of an apply configuration.
    """

    compiled: Compiled
    patches: bool


class Mutator:
    """One compiled MutatingAdmissionPolicy. `mutations` are in the order of the policy."""

    def __init__(self, policy: Policy) -> None:
        spec = policy.spec
        composer = Composer(params=policy.param_kind is not None)
        for variable in spec.get("variables") or ():
            composer.variable(variable["name"], variable["expression"])
        self._variables = composer.variables
        self._conditions = match_conditions.compile_conditions(composer, spec.get("matchConditions") or ())
        self.mutations: list[Mutation] = []
        for mutation in spec.get("mutations") or ():
            patches = mutation.get("patchType") == "JSONPatch"
            part = mutation.get("jsonPatch" if patches else "applyConfiguration") or {}
            returns = JSON_PATCH if patches else APPLY_CONFIGURATION
            self.mutations.append(
                Mutation(composer.compile(part.get("expression") or "", returns, patch_types=True), patches)
            )

    async def matches(
        self, bindings: Mapping[str, Any], authorizer_variables: AuthorizerVariables, *, large: bool
    ) -> bool:
        """Return whether the match conditions of the policy hold.

        Args:
            bindings: the values of the variables `object`, `oldObject`, `request`, `params` and `namespaceObject`.
            authorizer_variables: the variables for authorization checks.
            large: whether to evaluate them in a thread, because the objects are large.

        Raises:
            MatchConditionError: they cannot be evaluated.
            StatusError: 503, an authorization check in an expression could not be decided.
        """
        # Upstream's match conditions have no namespaceObject.
        condition_bindings = {**bindings, "namespaceObject": None}
        activation = Activation(condition_bindings, self._variables, authorizer_variables, large=large)
        return await match_conditions.match(self._conditions, activation)

    async def mutate(
        self,
        mutation: Mutation,
        obj: Object,
        schema: SchemaNode | None,
        bindings: Mapping[str, Any],
        authorizer_variables: AuthorizerVariables,
        *,
        large: bool,
    ) -> Object:
        """Return the result of one mutation. `obj` is not modified; it is the result if the mutation changes nothing.

        Args:
            mutation: one of `mutations`.
            obj: the object as the kind under which the policy matched the request.
            schema: the schema of the object; None if it has none.
            bindings: the values of the variables `object`, `oldObject`, `request`, `params` and `namespaceObject`, by
                name.
            authorizer_variables: the variables for authorization checks.
            large: whether to evaluate the expression in a thread, and to apply its result to `obj` there, because that
                would block the event loop.

        Raises:
            MutationError: the expression fails or exceeds its cost budget, or its result cannot be applied.
            StatusError: 503, an authorization check in an expression could not be decided.
        """
        compiled = mutation.compiled
        if compiled.program is None:
            raise MutationError(compiled.error)
        try:
            activation = Activation(bindings, self._variables, authorizer_variables, large=large)
            outcome, _ = await activation.evaluate_one(compiled, RUNTIME_BUDGET)
        except BudgetExceeded as error:
            raise MutationError(str(error)) from None
        if outcome.error:
            raise MutationError(outcome.error)
        if mutation.patches:
            return await offloaded(large, json_patch, obj, outcome.value)
        return await offloaded(large, apply_configuration, obj, outcome.value, schema)
