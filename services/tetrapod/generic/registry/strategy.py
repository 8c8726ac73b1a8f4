"""`Strategy`: what is special about a kind. The generic store calls its hooks; every hook has a default that does nothing.

Follows k8s.io/apiserver/pkg/registry/rest (RESTCreateStrategy, RESTUpdateStrategy, RESTDeleteStrategy). Objects are in the
storage version. A subresource with rules of its own (`status`) has a strategy of its own, usually a small subclass.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

from tetrapod.generic.registry.context import Context
from tetrapod.generic.registry.names import generate_name
from tetrapod.machinery.equality import same
from tetrapod.machinery.field import FieldError, go_quote
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.names import name_is_dns_subdomain

_METADATA_LABELS: Final = frozenset({"metadata.name", "metadata.namespace"})


class Strategy:
    """Defaults: namespaced objects, metadata.name and metadata.namespace selectable, no grace, no create by update."""

    namespaced: bool = True
    allow_create_on_update: bool = False
    allow_unconditional_update: bool = True
    has_status: bool = False
    """With a status subresource: status is `initial_status` on create, and kept on update of the main resource."""
    initial_status: Mapping[str, Any] | None = None
    """The status of a new object where `has_status`; None leaves it out. Built-in kinds have at least {}."""
    generation: tuple[str, ...] | None = None
    """Where given, metadata.generation is 1 at creation and grows when one of these top-level fields changes ("spec",)."""
    tells_empty: bool = False
    """Its generation grows with what is empty instead of absent too, where upstream compares by reflect.DeepEqual."""
    garbage_collection_default: str = "Background"
    """Propagation policy without DeleteOptions: "Background", "Orphan" (Job), or "Unsupported" (Event: never finalized)."""
    return_deleted_object: bool = False
    """DELETE answers with the object instead of a Status."""
    tabular: bool = True
    """Of a subresource: it can be asked for as a Table. Upstream forgot some."""
    field_labels: Sequence[str] = ()
    """What field selectors may name beside metadata.name and metadata.namespace; `selectable_fields` gives the values."""
    qualified_finalizers: bool = True
    """Finalizers need a domain. False for custom resources, CustomResourceDefinition and APIService."""
    metadata_rules: Literal["kube", "plain", "late", "none"] = "kube"
    """How metadata is validated: with finalizers that need a domain, without, or (upstream's own validation of the kind leaves
    metadata out) only when a new object is right in all else, and its name a path segment; or, where the server itself writes past
    the kind's rules, not at all."""
    names_again: bool = False
    """An update judges generateName by the kind's rule too, where upstream's ValidateUpdate is the whole validation once more."""
    repeats_errors: bool = False
    """An update's refusal says a complaint as often as it was made (custom resources); else each once."""

    def default(self, obj: Object, version: str) -> None:
        """Upstream's SetDefaults_ functions of this version, after the schema's defaults."""

    def prepare_for_create(self, ctx: Context, obj: Object) -> None:
        """Drop what the user may not set, and set what only the server sets."""

    def validate(self, ctx: Context, obj: Object) -> list[FieldError]:
        return []

    def warnings_on_create(self, ctx: Context, obj: Object) -> list[str]:
        return []

    def validate_name(self, name: str, prefix: bool) -> list[str]:
        """Complaints about metadata.name (`prefix`: about generateName). The default is a DNS subdomain."""
        return name_is_dns_subdomain(name, prefix)

    def generate_name(self, base: str) -> str:
        """A name from metadata.generateName (upstream: names.SimpleNameGenerator)."""
        return generate_name(base)

    def prepare_for_update(self, ctx: Context, new: Object, old: Object) -> None: ...

    def changes_generation(self, new: Object, old: Object) -> bool:
        """Whether an update begins a new generation, for kinds that have `generation`."""
        changed = [part for part in self.generation or () if new.get(part) != old.get(part)]
        return bool(changed) if self.tells_empty else any(not same(new.get(part), old.get(part)) for part in changed)

    def validate_update(self, ctx: Context, new: Object, old: Object) -> list[FieldError]:
        return []

    def may_delete_on_update(self, new: Object, old: Object) -> bool:
        """Whether an update that takes the last finalizer of a deleted object removes it (Namespace: spec.finalizers too)."""
        return True

    def warnings_on_update(self, ctx: Context, new: Object, old: Object) -> list[str]:
        return []

    def canonicalize(self, obj: Object) -> None:
        """Put into the form that is stored, after validation."""

    async def begin_create(self, ctx: Context, obj: Object) -> Any:
        """Take what must be taken before the object is stored (an address). What it returns goes to `end_create`."""
        return None

    async def end_create(self, ctx: Context, taken: Any, succeeded: bool) -> None: ...

    async def begin_update(self, ctx: Context, new: Object, old: Object) -> Any:
        return None

    async def end_update(self, ctx: Context, taken: Any, succeeded: bool) -> None: ...

    async def after_delete(self, ctx: Context, obj: Object) -> None: ...

    def check_graceful_delete(self, ctx: Context, obj: Object, options: Object) -> bool:
        """Whether deletion waits for a grace period; may set `options["gracePeriodSeconds"]`."""
        return False

    def selectable_fields(self, obj: Object) -> Mapping[str, str]:
        """The fields that field selectors may name, beside metadata.name and metadata.namespace, with their values."""
        return {}

    def field_label(self, version: str, label: str, value: str) -> tuple[str, str]:
        """Translate a field selector's label; raises ValueError with upstream's text for one that is not known."""
        named = ("metadata.name",) if self.field_labels and not self.namespaced else _METADATA_LABELS
        if label in named or label in self.field_labels:
            return label, value
        if self.field_labels:
            raise ValueError(f"field label not supported: {label}")
        raise ValueError(f'{go_quote(label)} is not a known field selector: only "metadata.name", "metadata.namespace"')

    def reset_fields(self, version: str) -> list[tuple[str, ...]]:
        """Paths that this endpoint drops from what a user sends (server-side apply owns none of them)."""
        return []

    def ttl(self, obj: Object) -> int:
        """Seconds until a stored object vanishes by itself; 0 is never (events: 3600)."""
        return 0
