"""`Strategy`: what is special about a kind. The generic store calls its hooks; every hook has a default that does nothing.

Follows k8s.io/apiserver/pkg/registry/rest (RESTCreateStrategy, RESTUpdateStrategy, RESTDeleteStrategy). Objects are in the
storage version. A subresource with rules of its own (`status`) has a strategy of its own, usually a small subclass.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tetrapod.generic.registry.context import Context
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import Object


class Strategy:
    """Defaults: namespaced objects, metadata.name and metadata.namespace selectable, no grace, no create by update."""

    namespaced: bool = True
    allow_create_on_update: bool = False
    allow_unconditional_update: bool = True
    has_status: bool = False
    """With a status subresource: status is dropped on create, and kept on update of the main resource."""
    generation: tuple[str, ...] | None = None
    """Where given, metadata.generation is 1 at creation and grows when one of these top-level fields changes ("spec",)."""
    garbage_collection_default: str = "Background"
    """Propagation policy without DeleteOptions: "Background", or "Orphan" (Job)."""
    return_deleted_object: bool = False
    """DELETE answers with the object instead of a Status."""

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
        from tetrapod.machinery.names import is_dns1123_subdomain

        return is_dns1123_subdomain(name.removesuffix("-") if prefix else name)

    def prepare_for_update(self, ctx: Context, new: Object, old: Object) -> None: ...

    def validate_update(self, ctx: Context, new: Object, old: Object) -> list[FieldError]:
        return []

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
        return label, value

    def reset_fields(self, version: str) -> list[tuple[str, ...]]:
        """Paths that this endpoint drops from what a user sends (server-side apply owns none of them)."""
        return []

    def ttl(self, obj: Object) -> int:
        """Seconds until a stored object vanishes by itself; 0 is never (events: 3600)."""
        return 0
