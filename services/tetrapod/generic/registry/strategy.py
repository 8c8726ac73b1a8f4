"""`Strategy`: the rules of a kind. The generic store calls its hooks, which do nothing by default.

Objects are in the storage version. A subresource with its own rules (`status`) has its own strategy, usually a small
subclass.
Upstream: staging/src/k8s.io/apiserver/pkg/registry/rest, RESTCreateStrategy, RESTUpdateStrategy, RESTDeleteStrategy
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

from tetrapod.generic.registry.context import Context
from tetrapod.generic.registry.generated_names import generate_name
from tetrapod.machinery.equality import same
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.golang.quoting import go_quote
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.names import name_is_dns_subdomain

_METADATA_LABELS: Final = frozenset({"metadata.name", "metadata.namespace"})


class Strategy:
    """The rules of a kind.

    Defaults: namespaced objects, selectable metadata.name and metadata.namespace, no graceful deletion, no create by
    update.
    """

    namespaced: bool = True
    allow_create_on_update: bool = False
    allow_unconditional_update: bool = True
    has_status: bool = False
    """Whether there is a status subresource: status is `initial_status` on create, and is not changed by updates of
    the main resource.
    """
    initial_status: Mapping[str, Any] | None = None
    """The status of a new object if `has_status`; None omits it. Built-in kinds have at least {}."""
    generation: tuple[str, ...] | None = None
    """If set, metadata.generation starts at 1 and is incremented when one of these top-level fields changes, such as
    ("spec",).
    """
    distinguishes_empty: bool = False
    """Whether the generation also changes between empty and absent values, for kinds that upstream compares with
    reflect.DeepEqual.
    """
    garbage_collection_default: str = "Background"
    """Propagation policy without DeleteOptions: "Background", "Orphan" (Job), or "Unsupported" (Event: no
    finalizers).
    """
    return_deleted_object: bool = False
    """Whether DELETE responds with the object instead of a Status."""
    tabular: bool = True
    """For a subresource: whether it can be requested as a Table. Upstream does not support that for some."""
    field_labels: Sequence[str] = ()
    """Field selector labels besides metadata.name and metadata.namespace; `selectable_fields` returns their values."""
    qualified_finalizers: bool = True
    """Whether finalizers need a domain. False for custom resources, CustomResourceDefinition and APIService."""
    metadata_rules: Literal["kube", "plain", "late", "none"] = "kube"
    """How metadata is validated.

    - "kube": finalizers need a domain.
    - "plain": finalizers need no domain.
    - "late": for kinds whose validation upstream omits metadata. It is validated only if a new object is otherwise
      valid, and its name must be a path segment.
    - "none": not at all, because the server itself writes objects that violate the kind's rules.
    """
    revalidates_generate_name: bool = False
    """Whether updates validate generateName with the kind's rule too, for kinds whose ValidateUpdate upstream repeats
    the whole validation.
    """
    repeats_errors: bool = False
    """Whether errors of an update are repeated as often as they occur (custom resources) instead of being reported
    once.
    """

    def default(self, obj: Object, version: str) -> None:
        """Apply upstream's SetDefaults_ functions of this version, after the schema's defaults."""

    def prepare_for_create(self, ctx: Context, obj: Object) -> None:
        """Clear fields that the user cannot set, and set those that only the server sets."""

    def validate(self, ctx: Context, obj: Object) -> list[FieldError]:
        """Return the errors of a new object."""
        return []

    def warnings_on_create(self, ctx: Context, obj: Object) -> list[str]:
        """Return warnings for the client."""
        return []

    def validate_name(self, name: str, prefix: bool) -> list[str]:
        """Return the errors of metadata.name (`prefix`: of generateName). The default requires a DNS subdomain."""
        return name_is_dns_subdomain(name, prefix)

    def generate_name(self, base: str) -> str:
        """Return a name based on metadata.generateName (upstream: names.SimpleNameGenerator)."""
        return generate_name(base)

    def prepare_for_update(self, ctx: Context, new: Object, old: Object) -> None:
        """Restore fields that the user cannot change, and set those that only the server sets."""

    def changes_generation(self, new: Object, old: Object) -> bool:
        """Return whether an update increments the generation, for kinds that have `generation`."""
        changed = [part for part in self.generation or () if new.get(part) != old.get(part)]
        return (
            bool(changed)
            if self.distinguishes_empty
            else any(not same(new.get(part), old.get(part)) for part in changed)
        )

    def validate_update(self, ctx: Context, new: Object, old: Object) -> list[FieldError]:
        """Return the errors of an update."""
        return []

    def may_delete_on_update(self, new: Object, old: Object) -> bool:
        """Return whether an update that removes the last finalizer of an object being deleted removes the object.

        For Namespaces, spec.finalizers count too.
        """
        return True

    def warnings_on_update(self, ctx: Context, new: Object, old: Object) -> list[str]:
        """Return warnings for the client."""
        return []

    def canonicalize(self, obj: Object) -> None:
        """Convert the object to its stored form, after validation."""

    async def begin_create(self, ctx: Context, obj: Object) -> Any:
        """Allocate what the object needs before it is stored (an address). The result is passed to `end_create`."""
        return None

    async def end_create(self, ctx: Context, allocation: Any, succeeded: bool) -> None:
        """Release the allocation if the object was not stored."""

    async def begin_update(self, ctx: Context, new: Object, old: Object) -> Any:
        """Allocate what the update needs. The result is passed to `end_update`."""
        return None

    async def end_update(self, ctx: Context, allocation: Any, succeeded: bool) -> None:
        """Release the allocation if the update was not stored, otherwise what the old object no longer needs."""

    async def after_delete(self, ctx: Context, obj: Object) -> None:
        """Release what a removed object had allocated."""

    def check_graceful_delete(self, ctx: Context, obj: Object, options: Object) -> bool:
        """Return whether deletion waits for a grace period. May set `options["gracePeriodSeconds"]`."""
        return False

    def selectable_fields(self, obj: Object) -> Mapping[str, str]:
        """Return the values of the object's fields that field selectors support.

        These are in addition to metadata.name and metadata.namespace.
        """
        return {}

    def field_label(self, version: str, label: str, value: str) -> tuple[str, str]:
        """Translate a field selector's label. Raises ValueError with upstream's text for an unsupported label."""
        named = ("metadata.name",) if self.field_labels and not self.namespaced else _METADATA_LABELS
        if label in named or label in self.field_labels:
            return label, value
        if self.field_labels:
            raise ValueError(f"field label not supported: {label}")
        raise ValueError(f'{go_quote(label)} is not a known field selector: only "metadata.name", "metadata.namespace"')

    def reset_fields(self, version: str) -> list[tuple[str, ...]]:
        """Return the paths that this endpoint ignores in requests.

        Server-side apply assigns them no manager.
        """
        return []

    def ttl(self, obj: Object) -> int:
        """Return the seconds until a stored object expires; 0 means never (events: 3600)."""
        return 0
