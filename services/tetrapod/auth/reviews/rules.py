"""SelfSubjectRulesReview: lists what the requesting user may do in a namespace.

Upstream: pkg/registry/authorization/selfsubjectrulesreview/rest.go.
"""

from __future__ import annotations

from typing import Any

from tetrapod.auth.reviews.access import GROUP
from tetrapod.generic.authorization.interface import RuleResolver
from tetrapod.generic.registry.context import Context
from tetrapod.generic.registry.rest import Rest
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.status import bad_request


class SelfSubjectRulesReviews(Rest):
    """The resource `selfsubjectrulesreviews`: lists the rules that apply to the requesting user in a namespace."""

    def __init__(self, resolver: RuleResolver) -> None:
        self._resolver = resolver

    async def create(self, ctx: Context, name: str, obj: Object, validate: Any, options: Object) -> Object:
        namespace = (obj.get("spec") or {}).get("namespace")
        if not namespace:
            raise bad_request("no namespace on request")
        if validate is not None:
            await validate(obj)
        rules = await self._resolver.rules_for(ctx.user, namespace)
        status: Object = {
            "resourceRules": rules.resource_rules,
            "nonResourceRules": rules.non_resource_rules,
            "incomplete": rules.incomplete,
        }
        if rules.error:
            status["evaluationError"] = rules.error
        # Upstream returns a new object, without the submitted metadata and namespace.
        return {
            "kind": "SelfSubjectRulesReview",
            "apiVersion": f"{GROUP}/v1",
            "metadata": {},
            "spec": {},
            "status": status,
        }
