"""`KindStrategy`, the strategy of most kinds, configured by functions and options instead of a subclass."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from tetrapod.core.podspec.features import drop_disabled_of_template
from tetrapod.generic.registry.context import Context
from tetrapod.generic.registry.status import StatusStrategy
from tetrapod.generic.registry.strategy import Strategy
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import Object

Default = Callable[[Object], None]
Validate = Callable[[Object], list[FieldError]]
ValidateUpdate = Callable[[Object, Object], list[FieldError]]
Warn = Callable[[Object, Object | None], list[str]]
"""Return warnings about the first object; the second is the stored object that it replaces, or None on create."""
NameCheck = Callable[[str, bool], list[str]]


class KindStrategy(Strategy):
    """A strategy configured by its arguments.

    Most of them set an attribute of `Strategy`, which describes it in full.

    Args:
        default: the defaulting function for all versions, or one for each version; versions without one get no
            defaults.
        validate: validates an object on create, and the new object on update.
        validate_update: validates (new, old) on update; its errors follow those of `validate`.
        whole_update: validates (new, old) on update instead of `validate` and `validate_update`, where upstream has
            another order.
        warnings: returns warnings about (new, old); old is None on create.
        status: whether the kind has a `/status` subresource, so that other writes do not change the status.
        initial_status: the status of new objects; None means {} if `status` is true, else no status.
        generation: the top-level fields whose change increments metadata.generation; () means that it is not
            maintained.
        create_on_update: whether a PUT of a missing object creates it.
        unconditional_update: whether an update may omit metadata.resourceVersion.
        returns_deleted: whether DELETE responds with the object instead of a Status.
        name: returns the errors of (name, whether it is generateName); None requires a DNS subdomain.
        fields: maps the names of selectable fields to functions that read them from an object.
        ttl: seconds until an object is deleted; 0 means never.
        metadata: see `Strategy.metadata_rules`; None keeps its default.
        template: the path of the kind's pod template; () if it has none. Writes drop the template's fields behind
            disabled feature gates, unless the stored template uses them.
        revalidates_generate_name: see `Strategy.revalidates_generate_name`; None keeps its default.
    """

    def __init__(  # noqa: PLR0913 - a declaration by keywords
        self,
        *,
        default: Default | Mapping[str, Default] | None = None,
        validate: Validate | None = None,
        validate_update: ValidateUpdate | None = None,
        whole_update: ValidateUpdate | None = None,
        warnings: Warn | None = None,
        status: bool = False,
        initial_status: Mapping[str, Any] | None = None,
        generation: Sequence[str] = (),
        create_on_update: bool = False,
        unconditional_update: bool = True,
        returns_deleted: bool = False,
        name: NameCheck | None = None,
        fields: Mapping[str, Callable[[Object], str]] | None = None,
        ttl: int = 0,
        metadata: Literal["kube", "plain", "late"] | None = None,
        template: tuple[str, ...] = (),
        revalidates_generate_name: bool | None = None,
    ) -> None:
        self._default = default
        self._validate = validate
        self._validate_update = validate_update
        self._whole_update = whole_update
        self._warnings = warnings
        self.has_status = status
        self.initial_status = initial_status if initial_status is not None else ({} if status else None)
        self.generation = tuple(generation) or None
        self.allow_create_on_update = create_on_update
        self.allow_unconditional_update = unconditional_update
        self.return_deleted_object = returns_deleted
        self._name = name
        self._fields = dict(fields or {})
        self.field_labels = tuple(self._fields)
        self._ttl = ttl
        if metadata is not None:
            self.metadata_rules = metadata
        self._template = template
        if revalidates_generate_name is not None:
            self.revalidates_generate_name = revalidates_generate_name

    def default(self, obj: Object, version: str) -> None:
        function = self._default.get(version) if isinstance(self._default, Mapping) else self._default
        if function is not None:
            function(obj)

    def prepare_for_create(self, ctx: Context, obj: Object) -> None:
        if self._template:
            drop_disabled_of_template(self._pod_template(obj), None)

    def prepare_for_update(self, ctx: Context, new: Object, old: Object) -> None:
        if self._template:
            drop_disabled_of_template(self._pod_template(new), self._pod_template(old))

    def _pod_template(self, obj: Object) -> Object | None:
        value: Object | None = obj
        for part in self._template:
            value = (value or {}).get(part)
        return value

    def validate(self, ctx: Context, obj: Object) -> list[FieldError]:
        return self._validate(obj) if self._validate else []

    def validate_update(self, ctx: Context, new: Object, old: Object) -> list[FieldError]:
        if self._whole_update:
            return self._whole_update(new, old)
        errors = self._validate(new) if self._validate else []
        return errors + self._validate_update(new, old) if self._validate_update else errors

    def warnings_on_create(self, ctx: Context, obj: Object) -> list[str]:
        return self._warnings(obj, None) if self._warnings else []

    def warnings_on_update(self, ctx: Context, new: Object, old: Object) -> list[str]:
        return self._warnings(new, old) if self._warnings else []

    def validate_name(self, name: str, prefix: bool) -> list[str]:
        return self._name(name, prefix) if self._name else super().validate_name(name, prefix)

    def selectable_fields(self, obj: Object) -> Mapping[str, str]:
        return {label: read(obj) for label, read in self._fields.items()}

    def reset_fields(self, version: str) -> list[tuple[str, ...]]:
        return [("status",)] if self.has_status else []

    def ttl(self, obj: Object) -> int:
        return self._ttl


def status_strategy(strategy: Strategy, **options: Any) -> StatusStrategy:
    """Return `StatusStrategy(strategy, **options)`, the strategy of a kind's `/status` subresource.

    Args:
        strategy: the strategy of the kind itself.
    """
    return StatusStrategy(strategy, **options)
