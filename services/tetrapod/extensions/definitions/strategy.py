"""Create and update rules of definitions, and of their status (upstream: registry/customresourcedefinition/strategy.go)."""

from __future__ import annotations

from tetrapod.extensions.definitions.defaults import set_defaults
from tetrapod.extensions.validation.definition import validate_create, validate_status_update, validate_update
from tetrapod.extensions.validation.internal import Spec
from tetrapod.generic.registry.context import Context
from tetrapod.generic.registry.strategy import Strategy
from tetrapod.machinery.copying import copy_value
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.lengthy import Lengthy
from tetrapod.machinery.schema.cel_rule_errors import has_rules
from tetrapod.machinery.schema.crd_schema import unkeyed_sets, unrecognized_formats
from tetrapod.machinery.serializer.numbers import integral


class CrdStrategy(Strategy):
    namespaced = False
    allow_unconditional_update = False
    qualified_finalizers = False
    generation: tuple[str, ...] | None = ("spec",)

    def default(self, obj: Object, version: str) -> None:
        set_defaults(obj)

    def prepare_for_create(self, ctx: Context, obj: Object) -> None:
        obj["status"] = {"conditions": None, "acceptedNames": {"plural": "", "kind": ""}, "storedVersions": None}
        _store_version(obj)

    def prepare_for_update(self, ctx: Context, new: Object, old: Object) -> None:
        new["status"] = copy_value(old.get("status") or {})
        _store_version(new)

    def validate(self, ctx: Context, obj: Object) -> list[FieldError]:
        _leave_loop(ctx, obj)
        return validate_create(obj)

    def validate_name(self, name: str, prefix: bool) -> list[str]:
        """Checked with the spec, which it must follow."""
        return []

    def validate_update(self, ctx: Context, new: Object, old: Object) -> list[FieldError]:
        _leave_loop(ctx, new)
        return validate_update(new, old)

    def warnings_on_create(self, ctx: Context, obj: Object) -> list[str]:
        return [f'unrecognized format "{name}"' for name in _unrecognized_formats(obj)] + _set_warnings(obj)

    def warnings_on_update(self, ctx: Context, new: Object, old: Object) -> list[str]:
        known = set(_unrecognized_formats(old))
        warnings = [f'unrecognized format "{name}"' for name in _unrecognized_formats(new) if name not in known]
        kept = _set_warnings(old)
        return warnings + [warning for warning in _set_warnings(new) if warning not in kept]

    def canonicalize(self, obj: Object) -> None:
        """Numbers of defaults, enums and examples are judged as they were written, and stored as they are read back."""
        integral(obj)

    def reset_fields(self, version: str) -> list[tuple[str, ...]]:
        return [("status",)]


class CrdStatusStrategy(CrdStrategy):
    """`/status` changes status, and metadata too."""

    generation = None

    def prepare_for_update(self, ctx: Context, new: Object, old: Object) -> None:
        new["spec"] = old["spec"]  # large, and from here on only read

    def validate_update(self, ctx: Context, new: Object, old: Object) -> list[FieldError]:
        return validate_status_update(new, old)

    def warnings_on_update(self, ctx: Context, new: Object, old: Object) -> list[str]:
        return []

    def reset_fields(self, version: str) -> list[tuple[str, ...]]:
        return [("spec",)]


def _store_version(crd: Object) -> None:
    """The storage version is one of those in which objects may be stored."""
    status = crd["status"]
    for version in crd["spec"].get("versions") or ():
        if version.get("storage"):
            stored = status.get("storedVersions") or []
            if version["name"] not in stored:
                status["storedVersions"] = [*stored, version["name"]]
            return


def _unrecognized_formats(crd: Object) -> list[str]:
    """Those of all versions, in order; what all have in common is looked at once."""
    return [name for schema in Spec.of(crd["spec"]).schemas() for name in unrecognized_formats(schema)]


def _set_warnings(crd: Object) -> list[str]:
    kinds = {kind for schema in Spec.of(crd["spec"]).schemas() for kind in unkeyed_sets(schema)}
    text = 'x-kubernetes-list-type: set for items of type "{}" is not supported by server-side apply or CEL validation rules'
    return [text.format(kind) for kind in sorted(kinds)]


def _leave_loop(ctx: Context, obj: Object) -> None:
    """CEL rules are compiled, and tried on defaults: nobody shall wait for that."""
    schemas = ((version.get("schema") or {}).get("openAPIV3Schema") for version in obj["spec"].get("versions") or ())
    if not ctx.large and any(has_rules(schema) for schema in schemas if schema):
        raise Lengthy
