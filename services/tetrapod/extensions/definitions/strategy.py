"""The strategies of CustomResourceDefinitions and of their status subresource.

Upstream: apiextensions-apiserver/pkg/registry/customresourcedefinition/strategy.go.
"""

from __future__ import annotations

from tetrapod.extensions.validation.definition import validate_create, validate_status_update, validate_update
from tetrapod.extensions.validation.internal_version import Spec
from tetrapod.generic.registry.context import Context
from tetrapod.generic.registry.strategy import Strategy
from tetrapod.machinery.copying import copy_value
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.golang.json_numbers import integral
from tetrapod.machinery.golang.quoting import go_quote
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.long_work import TakesTooLong, is_limited
from tetrapod.machinery.metadata import repeated_update_errors
from tetrapod.machinery.schema.cel_rule_errors import has_rules
from tetrapod.machinery.schema.crd_schema import unkeyed_sets, unrecognized_formats


class CrdStrategy(Strategy):
    """The strategy of CustomResourceDefinitions, which adds the storage version to status.storedVersions."""

    namespaced = False
    allow_unconditional_update = False
    qualified_finalizers = False
    repeats_errors = True
    metadata_rules = "own"
    generation: tuple[str, ...] | None = ("spec",)

    def default(self, obj: Object, version: str) -> None:
        set_defaults(obj)

    def prepare_for_create(self, ctx: Context, obj: Object) -> None:
        obj["status"] = {"conditions": None, "acceptedNames": {"plural": "", "kind": ""}, "storedVersions": None}
        _store_version(obj)

    def prepare_for_update(self, ctx: Context, new: Object, old: Object) -> None:
        new["status"] = copy_value(old.get("status") or {})
        _store_version(new)

    def read_back(self, obj: Object) -> None:
        _drop_empty_webhook(obj["spec"]["conversion"])

    def validate(self, ctx: Context, obj: Object) -> list[FieldError]:
        _leave_loop(obj)
        return validate_create(obj)

    def validate_update(self, ctx: Context, new: Object, old: Object) -> list[FieldError]:
        _leave_loop(new)
        return repeated_update_errors(new, old) + validate_update(new, old)

    def warnings_on_create(self, ctx: Context, obj: Object) -> list[str]:
        return [f"unrecognized format {go_quote(name)}" for name in _unrecognized_formats(obj)] + _set_warnings(obj)

    def warnings_on_update(self, ctx: Context, new: Object, old: Object) -> list[str]:
        existing_formats = set(_unrecognized_formats(old))
        warnings = [
            f"unrecognized format {go_quote(name)}"
            for name in _unrecognized_formats(new)
            if name not in existing_formats
        ]
        existing_warnings = _set_warnings(old)
        return warnings + [warning for warning in _set_warnings(new) if warning not in existing_warnings]

    def canonicalize(self, obj: Object) -> None:
        """Convert floats without a fraction in defaults, enums and examples to integers, in place.

        Storage would return them as integers anyway. This happens after validation. Implements `Strategy.canonicalize`.
        """
        integral(obj)

    def reset_fields(self, version: str) -> list[tuple[str, ...]]:
        return [("status",)]


class CrdStatusStrategy(CrdStrategy):
    """The strategy of the status subresource, which updates status and metadata but not the spec."""

    generation = None
    tabular = False

    def prepare_for_update(self, ctx: Context, new: Object, old: Object) -> None:
        new["spec"] = old["spec"]  # shared, not copied: it is large, and not modified from here on

    def validate_update(self, ctx: Context, new: Object, old: Object) -> list[FieldError]:
        return repeated_update_errors(new, old) + validate_status_update(new, old)

    def warnings_on_update(self, ctx: Context, new: Object, old: Object) -> list[str]:
        return []

    def reset_fields(self, version: str) -> list[tuple[str, ...]]:
        return [("spec",)]


def _store_version(crd: Object) -> None:
    """Add the storage version to status.storedVersions if it is not there, in place."""
    status = crd["status"]
    for version in crd["spec"].get("versions") or ():
        if version.get("storage"):
            stored = status.get("storedVersions") or []
            if version["name"] not in stored:
                status["storedVersions"] = [*stored, version["name"]]
            return


def _unrecognized_formats(crd: Object) -> list[str]:
    """Return the unrecognized formats in the schemas of all versions, in order and with repetitions.

    A schema that all versions share is checked once.
    """
    return [name for schema in Spec.of(crd["spec"]).schemas() for name in unrecognized_formats(schema)]


def _set_warnings(crd: Object) -> list[str]:
    kinds = {kind for schema in Spec.of(crd["spec"]).schemas() for kind in unkeyed_sets(schema)}
    text = (
        'x-kubernetes-list-type: set for items of type "{}" is not supported by server-side apply or CEL validation '
        "rules"
    )
    return [text.format(kind) for kind in sorted(kinds)]


def _leave_loop(obj: Object) -> None:
    """Raise TakesTooLong if a schema has CEL rules and the hook runs on the event loop; the caller then uses a thread.

    Compiling rules and evaluating them on defaults would block the event loop.
    """
    schemas = ((version.get("schema") or {}).get("openAPIV3Schema") for version in obj["spec"].get("versions") or ())
    if is_limited() and any(has_rules(schema) for schema in schemas if schema):
        raise TakesTooLong


def _drop_empty_webhook(conversion: Object) -> None:
    """Remove a conversion webhook without a client configuration and review versions, in place.

    Upstream's internal version has no field for it. Its stored form also lacks an empty list of review versions.
    """
    webhook = conversion.get("webhook")
    if webhook is not None and webhook.get("clientConfig") is None and not webhook.get("conversionReviewVersions"):
        del conversion["webhook"]


def set_defaults(obj: Object) -> None:
    """Set the defaults of a definition in place.

    singular is the kind in lower case, and listKind is the kind with the suffix `List`. The conversion strategy is
    None, and the port of a conversion webhook's Service 443. status.storedVersions is the storage version. A conversion
    webhook without fields is removed.

    Upstream: apiextensions-apiserver/pkg/apis/apiextensions/v1 (defaults.go, conversion.go).
    """
    spec = obj.get("spec") or {}
    names = spec.get("names") or {}
    kind = names.get("kind") or ""
    if not names.get("singular") and kind:
        names["singular"] = kind.lower()
    if not names.get("listKind") and kind:
        names["listKind"] = f"{kind}List"
    if spec.get("conversion") is None:
        spec["conversion"] = {"strategy": "None"}
    webhook = spec["conversion"].get("webhook") or {}
    if webhook.get("conversionReviewVersions") is None:
        _drop_empty_webhook(spec["conversion"])
    service = (webhook.get("clientConfig") or {}).get("service")
    if service is not None and service.get("port") is None:
        service["port"] = 443
    status = obj.get("status")
    if isinstance(status, dict) and not status.get("storedVersions"):
        stored = next((v["name"] for v in spec.get("versions") or () if v.get("storage")), None)
        if stored:
            status["storedVersions"] = [stored]
