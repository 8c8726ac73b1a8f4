"""The matchConditions of authorization webhooks: CEL expressions over the SubjectAccessReview that would be sent.

Upstream: k8s.io/apiserver/pkg/authorization/cel/{compile,matcher}.go.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import cache, partial
from typing import Any, Final

from tetrapod.generic.admission.policy.expressions import BOOL, Compiled, compile_expression
from tetrapod.generic.authorization.metrics import CONDITION_ERRORS, CONDITION_SECONDS, EXCLUSIONS
from tetrapod.generic.authorization.webhook import ConditionError
from tetrapod.generic.scheduling.offload import offloaded_if_slow
from tetrapod.machinery.cel import declarations
from tetrapod.machinery.cel.declarations import DeclType, list_decl, map_decl, object_decl
from tetrapod.machinery.cel.environment import Environment
from tetrapod.machinery.cel.errors import CelError
from tetrapod.machinery.error_aggregate import aggregate_errors
from tetrapod.machinery.gvk import Object

_RESOURCE_FIELDS: Final = ("namespace", "verb", "group", "version", "resource", "subresource", "name")


def compile_condition(expression: str) -> Compiled:
    """Compile a match condition, which must return a bool; if it does not compile, the result has an error."""
    return compile_expression(_environment(), expression, BOOL)


class MatchConditions:
    """The matchConditions of one webhook.

    Args:
        conditions: the compiled conditions; those with an error are ignored.
        name: the name of the webhook, for metrics.
    """

    def __init__(self, conditions: Sequence[Compiled], name: str) -> None:
        self._conditions = [(c, c.program) for c in conditions if c.program is not None]
        self._labels = ("Webhook", name)
        programs = [program for _, program in self._conditions]
        self._selectors = [
            name for name in ("fieldSelector", "labelSelector") if any(p.selects(name) for p in programs)
        ]

    async def match(self, spec: Object) -> bool:
        """Return whether all conditions are true, so that the webhook is to be called.

        One false condition decides, even if others before it fail. Conditions that take long are evaluated in a thread.

        Args:
            spec: the spec of the SubjectAccessReview that would be sent.

        Raises:
            ConditionError: a condition fails and none is false.
        """
        start = time.perf_counter()
        try:
            matched, errors = await offloaded_if_slow(partial(self._evaluate, {"request": self._request(spec)}))
        finally:
            CONDITION_SECONDS.observe(self._labels, time.perf_counter() - start)
        if errors:
            CONDITION_ERRORS.add(self._labels)
        if not matched:
            EXCLUSIONS.add(self._labels)
        elif errors:
            raise ConditionError(aggregate_errors(errors))
        return matched

    def _evaluate(self, bindings: Object) -> tuple[bool, list[str]]:
        """Evaluate the conditions up to the first false one.

        Args:
            bindings: the values of the variables.

        Returns:
            Whether no condition is false, and the errors of those that failed.

        Raises:
            TakesTooLong: the evaluation would take too long for the event loop.
        """
        errors: list[str] = []
        for condition, program in self._conditions:
            try:
                if program.evaluate(bindings) is not True:
                    return False, errors
            except CelError as error:
                errors.append(f"cel evaluation error: expression '{condition.expression}' resulted in error: {error}")
        return True, errors

    def _request(self, spec: Object) -> Object:
        """Return the CEL value of the variable `request` for the spec of a SubjectAccessReview.

        Strings are always set; attributes and selectors are set only if the request has them.
        """
        request: dict[str, Any] = {
            "user": spec.get("user") or "",
            "groups": spec.get("groups") or [],
            "uid": spec.get("uid") or "",
        }
        request["extra"] = spec.get("extra") or {}
        if (resource := spec.get("resourceAttributes")) is not None:
            attributes: Object = {name: resource.get(name) or "" for name in _RESOURCE_FIELDS}
            for name in self._selectors:
                if resource.get(name):
                    attributes[name] = {"requirements": [{"values": [], **r} for r in resource[name]["requirements"]]}
            request["resourceAttributes"] = attributes
        if (path := spec.get("nonResourceAttributes")) is not None:
            request["nonResourceAttributes"] = {"verb": path.get("verb") or "", "path": path.get("path") or ""}
        return request


@cache
def _environment() -> Environment:
    text, texts = declarations.STRING, list_decl(declarations.STRING)
    requirement = object_decl("kubernetes.SelectorRequirement", {"key": text, "operator": text, "values": texts})
    selector: dict[str, DeclType] = {"rawSelector": text, "requirements": list_decl(requirement)}
    resource: dict[str, DeclType] = {
        **dict.fromkeys(_RESOURCE_FIELDS, text),
        "fieldSelector": object_decl("kubernetes.FieldSelectorAttributes", selector),
        "labelSelector": object_decl("kubernetes.LabelSelectorAttributes", selector),
    }
    fields: dict[str, DeclType] = {
        "resourceAttributes": object_decl("kubernetes.ResourceAttributes", resource),
        "nonResourceAttributes": object_decl("kubernetes.NonResourceAttributes", {"path": text, "verb": text}),
        "user": text,
        "groups": texts,
        "extra": map_decl(text, texts),
        "uid": text,
    }
    return Environment({"request": object_decl("kubernetes.SubjectAccessReviewSpec", fields)})
