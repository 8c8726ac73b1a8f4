"""`KindStrategy`, the strategy of most kinds, a declaration of functions and options instead of a subclass."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tetrapod.core.podspec.features import drop_disabled_of_template
from tetrapod.core.podspec.stored import updating
from tetrapod.generic.registry.context import Context
from tetrapod.generic.registry.gated_fields import NO_GATES, FieldGates
from tetrapod.generic.registry.hand_written import NO_HAND_WRITTEN, HandWritten
from tetrapod.generic.registry.strategy import MetadataRules, Revalidation, Strategy
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import Object

Default = Callable[[Object], None]
Validate = Callable[[Object], list[FieldError]]
ValidateUpdate = Callable[[Object, Object], list[FieldError]]
Warn = Callable[[Object, Object | None], list[str]]
"""Return warnings about the first object; the second is the stored object that it replaces, or None on create."""
NameCheck = Callable[[str, bool], list[str]]


@dataclass(kw_only=True, eq=False, repr=False)
class KindStrategy(Strategy):
    """A strategy configured by its fields. Fields that are not listed here are those of `Strategy`.

    Attributes:
        defaults: the defaulting function for all versions, or one for each version; a version without one gets no
            defaults.
        validator: validates an object on create, and the new object on update.
        update_validator: validates (new, old) on update; its errors follow those of `validator`.
        whole_update_validator: validates (new, old) on update instead of the two others, where upstream has another
            order.
        warnings: returns the warnings about (new object, stored object or None on create).
        name_validator: returns the errors of (name, whether it is generateName); None requires a DNS subdomain.
        fields: functions that read the value of a selectable field from an object, by the name of the field.
        pod_template: the path of the kind's pod template; () if it has none. Writes drop the template's fields behind
            disabled feature gates, unless the stored template uses them.
        initial_status: the status of new objects; None means {} if `has_status`, else no status.
    """

    defaults: Default | Mapping[str, Default] | None = None
    validator: Validate | None = None
    update_validator: ValidateUpdate | None = None
    whole_update_validator: ValidateUpdate | None = None
    warnings: Warn | None = None
    name_validator: NameCheck | None = None
    fields: Mapping[str, Callable[[Object], str]] = field(default_factory=dict)
    pod_template: tuple[str, ...] = ()
    has_status: bool = False
    initial_status: Mapping[str, Any] | None = None
    generation: tuple[str, ...] | None = None
    allow_create_on_update: bool = False
    allow_unconditional_update: bool = True
    return_deleted_object: bool = False
    metadata_rules: MetadataRules = "kube"
    revalidates_generate_name: Revalidation = "never"
    gated_fields: FieldGates = NO_GATES
    hand_written: HandWritten = NO_HAND_WRITTEN

    def __post_init__(self) -> None:
        self.field_labels = tuple(self.fields)
        if self.initial_status is None and self.has_status:
            self.initial_status = {}

    def default(self, obj: Object, version: str) -> None:
        function = self.defaults.get(version) if isinstance(self.defaults, Mapping) else self.defaults
        if function is not None:
            function(obj)

    @property
    def has_defaults(self) -> bool:
        kind = type(self)
        return (
            self.defaults is not None
            or kind.default is not KindStrategy.default
            or kind.default_stored is not Strategy.default_stored
        )

    def prepare_for_create(self, ctx: Context, obj: Object) -> None:
        if self.pod_template:
            drop_disabled_of_template(self._pod_template(obj), None)

    def prepare_for_update(self, ctx: Context, new: Object, old: Object) -> None:
        if self.pod_template:
            drop_disabled_of_template(self._pod_template(new), self._pod_template(old))

    def _pod_template(self, obj: Object) -> Object | None:
        value: Object | None = obj
        for part in self.pod_template:
            value = (value or {}).get(part)
        return value

    def validate(self, ctx: Context, obj: Object) -> list[FieldError]:
        return self.validator(obj) if self.validator else []

    def validate_update(self, ctx: Context, new: Object, old: Object) -> list[FieldError]:
        if not self.pod_template:
            return self._update_errors(new, old)
        with updating(self._pod_template(old)):
            return self._update_errors(new, old)

    def _update_errors(self, new: Object, old: Object) -> list[FieldError]:
        if self.whole_update_validator:
            return self.whole_update_validator(new, old)
        errors = self.validator(new) if self.validator else []
        return errors + self.update_validator(new, old) if self.update_validator else errors

    def warnings_on_create(self, ctx: Context, obj: Object) -> list[str]:
        return self.warnings(obj, None) if self.warnings else []

    def warnings_on_update(self, ctx: Context, new: Object, old: Object) -> list[str]:
        return self.warnings(new, old) if self.warnings else []

    def validate_name(self, name: str, prefix: bool) -> list[str]:
        return self.name_validator(name, prefix) if self.name_validator else super().validate_name(name, prefix)

    def selectable_fields(self, obj: Object) -> Mapping[str, str]:
        return {label: read(obj) for label, read in self.fields.items()}

    def reset_fields(self, version: str) -> list[tuple[str, ...]]:
        return [("status",)] if self.has_status else []
