"""Strategies of APIServices and of their status. Upstream: kube-aggregator/pkg/registry/apiservice/strategy.go."""

from __future__ import annotations

from collections.abc import Callable

from tetrapod.aggregator.apiservice import local_condition, service_of
from tetrapod.aggregator.registration.validation import validate_api_service, validate_status
from tetrapod.generic.registry.context import Context
from tetrapod.generic.registry.status import StatusStrategy
from tetrapod.generic.registry.strategy import Strategy
from tetrapod.machinery.conditions import set_condition
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.metadata import repeated_update_errors


class APIServiceStrategy(Strategy):
    """The strategy of APIServices. A new local one gets the condition Available.

    Args:
        on_delete: called with the name of each deleted APIService, before the response is written.
    """

    namespaced = False
    has_status = True
    initial_status = {}
    allow_unconditional_update = False
    qualified_finalizers = False
    metadata_rules = "own"
    repeats_errors = True

    def __init__(self, on_delete: Callable[[str], None] = lambda name: None) -> None:
        self._on_delete = on_delete

    def default(self, obj: Object, version: str) -> None:
        service = service_of(obj)
        if service is not None and service.get("port") is None:
            service["port"] = 443

    def prepare_for_create(self, ctx: Context, obj: Object) -> None:
        obj["status"] = {}
        if service_of(obj) is None:
            set_condition(obj, local_condition())

    def validate(self, ctx: Context, obj: Object) -> list[FieldError]:
        return validate_api_service(obj)

    def validate_update(self, ctx: Context, new: Object, old: Object) -> list[FieldError]:
        """Return the errors of an update.

        As upstream, it validates the metadata twice more than other kinds and reports the errors each time.
        """
        return repeated_update_errors(new, old) + validate_api_service(new)

    def reset_fields(self, version: str) -> list[tuple[str, ...]]:
        return [("status",)]

    async def after_delete(self, ctx: Context, obj: Object) -> None:
        if not ctx.dry_run:
            self._on_delete(obj["metadata"]["name"])


class APIServiceStatusStrategy(StatusStrategy):
    """The strategy of `apiservices/status`.

    A condition without lastTransitionTime gets a null, as upstream's type encodes it.

    Args:
        main: the strategy of APIServices themselves.
    """

    tabular = False

    def __init__(self, main: APIServiceStrategy) -> None:
        super().__init__(
            main,
            keep_metadata=("labels", "annotations", "finalizers", "ownerReferences"),
            validate=lambda new, old: repeated_update_errors(new, old) + validate_status(new),
        )

    def prepare_for_update(self, ctx: Context, new: Object, old: Object) -> None:
        super().prepare_for_update(ctx, new, old)
        for condition in (new.get("status") or {}).get("conditions") or []:
            condition.setdefault("lastTransitionTime", None)
