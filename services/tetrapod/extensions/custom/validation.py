"""Validation of custom resources. The errors of their metadata are given.

It covers the schema, scale paths, embedded resources, list types and CEL rules.

Upstream: apiextensions-apiserver/pkg/registry/customresource (validator.go, strategy.go).
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any, Final

from tetrapod.generic.metrics.histograms import Histogram
from tetrapod.machinery.field import FieldError, invalid
from tetrapod.machinery.golang.formatting import plain, type_name
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.schema import listtypes, objectmeta, validation
from tetrapod.machinery.schema.cel_rules import COMPILED
from tetrapod.machinery.schema.cel_run import Run
from tetrapod.machinery.schema.cel_validation import RuleValidator
from tetrapod.machinery.schema.correlation import Correlation, Ratchet
from tetrapod.machinery.schema.declared_types import has_declared_types
from tetrapod.machinery.schema.decode_scalars import ABSENT
from tetrapod.machinery.schema_node import SchemaNode

_BLOCKING: Final = frozenset(
    {"FieldValueNotSupported", "FieldValueRequired", "FieldValueTooLong", "FieldValueTooMany", "FieldValueTypeInvalid"}
)
_NOT_CHECKED: Final = (
    "some validation rules were not checked because the object was invalid; correct the existing errors to complete "
    "validation"
)
_MAX_INT32: Final = (1 << 31) - 1


# Upstream: k8s.io/apiserver/pkg/cel/metrics, apiextensions-apiserver/pkg/apiserver/validation.
_DEFAULT: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
_COMPILATION: Final = Histogram(
    "apiserver_cel_compilation_duration_seconds", "CEL compilation time in seconds.", (), _DEFAULT
)
EVALUATION: Final = Histogram(
    "apiserver_cel_evaluation_duration_seconds", "CEL evaluation time in seconds.", (), _DEFAULT
)
RATCHETING: Final = Histogram(
    "apiextensions_apiserver_validation_ratcheting_seconds",
    "Time for comparison of old to new for the purposes of CRDValidationRatcheting during an UPDATE in seconds.",
    (),
    tuple(0.00001 * 4**i for i in range(10)),
)
COMPILED.append(lambda seconds: _COMPILATION.observe((), seconds))


class CustomValidator:
    """The validator of custom resources in one version.

    In `long_work.on_event_loop`, its methods raise TakesTooLong if CEL rules take too long. The caller then repeats the
    call in a thread, which has no such limit.

    Args:
        node: the root of the version's schema.
        scale: the declaration of the scale subresource, or None.
    """

    def __init__(self, node: SchemaNode, scale: Object | None) -> None:
        self._node = node
        self._scale = scale
        self._rules = RuleValidator(node, root=True)

    def create(self, obj: Object, errors: list[FieldError]) -> list[FieldError]:
        """Return the errors of a new object; [] if it is valid.

        Args:
            errors: those of its metadata, with which the result begins.

        Raises:
            TakesTooLong: CEL rules take too long for the event loop, on which this runs.
        """
        errors = errors + validation.validate(self._node, obj)
        errors += self._scale_spec(obj) + self._scale_status(obj)
        errors += objectmeta.validate_embedded(self._node, obj)
        errors += listtypes.validate(self._node, obj)
        return errors + self._by_rules(obj, None, errors, [])

    def update(self, new: Object, old: Object, errors: list[FieldError], warnings: list[str]) -> list[FieldError]:
        """Return the errors of an update. Values that did not change may be invalid (ratcheting).

        Args:
            errors: those of the metadata, with which the result begins.
            warnings: receives the CEL errors that ratcheting tolerates.

        Raises:
            TakesTooLong: CEL rules take too long for the event loop, on which this runs.
        """
        correlation = Correlation(self._node, new, old)
        errors = errors + validation.validate(self._node, new, correlation=correlation)
        errors += self._scale_spec(new) + self._scale_status(new)
        errors += objectmeta.validate_embedded(self._node, new)
        errors += self._new_duplicates(new, old)
        errors += self._by_rules(new, old, errors, warnings, correlation)
        RATCHETING.observe((), sum(correlation.spent))
        return errors

    def status(self, new: Object, old: Object, errors: list[FieldError], warnings: list[str]) -> list[FieldError]:
        """Return the errors of a status update. Values that did not change may be invalid (ratcheting).

        By the schema, only the status is validated; CEL rules apply to the whole object.

        Args:
            errors: those of the metadata, with which the result begins.
            warnings: receives the CEL errors that ratcheting tolerates.

        Raises:
            TakesTooLong: CEL rules take too long for the event loop, on which this runs.
        """
        correlation = Correlation(self._node, new, old)
        errors = errors + self._status_alone(new, correlation)
        errors += self._scale_status(new)
        errors += self._new_duplicates(new, old)
        errors += self._by_rules(new, old, errors, warnings, correlation)
        RATCHETING.observe((), sum(correlation.spent))
        return errors

    def _status_alone(self, new: Object, correlation: Correlation) -> list[FieldError]:
        """Return the schema errors of the status, or [] if the schema or the object has no status.

        Their field paths begin with "status", but paths inside the messages begin below it, as upstream's do.

        Args:
            new: the new object.
            correlation: relates the new object to the stored one, so that errors of unchanged values are tolerated.
        """
        node = self._node.properties.get("status")
        if node is None or "status" not in new:
            return []
        correlated = correlation.key("status") or Correlation(node, new["status"], None)
        errors = validation.validate(node, new["status"], correlation=correlated)
        return [
            replace(e, field="status" if e.field == "<nil>" else validation.joined("status", e.field)) for e in errors
        ]

    def _new_duplicates(self, new: Object, old: Object) -> list[FieldError]:
        """Return the errors of duplicates in sets and map lists, or [] if the stored object has duplicates too."""
        errors = listtypes.validate(self._node, new)
        return errors if errors and not listtypes.validate(self._node, old) else []

    def _by_rules(
        self,
        new: Object,
        old: Object | None,
        errors: list[FieldError],
        warnings: list[str],
        correlation: Correlation | None = None,
    ) -> list[FieldError]:
        """Return the errors of the CEL rules.

        Args:
            old: the stored object; None on create.
            errors: the errors of metadata and schema. If one of them prevents the evaluation, the result is one error
                that says so.
            warnings: receives the errors that ratcheting tolerates.
            correlation: the stored values by position in the new object; None on create.
        """
        if self._rules.empty:
            return []
        if any(e.type in _BLOCKING for e in errors):
            return [invalid("<nil>", None, _NOT_CHECKED)]
        # A valid new object differs from its schema only where it equals the old one.
        unsuited = old is not None and not has_declared_types(self._node, old)
        run = Run(unsuited=unsuited)
        began = time.perf_counter()
        self._rules.validate("", new, old, run, Ratchet(correlation))
        EVALUATION.observe((), time.perf_counter() - began)
        warnings += run.warnings
        return run.errors

    def _scale_spec(self, obj: Object) -> list[FieldError]:
        return [] if self._scale is None else _replicas_errors(obj, self._scale["specReplicasPath"])

    def _scale_status(self, obj: Object) -> list[FieldError]:
        if self._scale is None:
            return []
        errors = _replicas_errors(obj, self._scale["statusReplicasPath"])
        path = self._scale.get("labelSelectorPath")
        if path:
            value, error_text = _nested(obj, path)
            if not error_text and value is not ABSENT and not isinstance(value, str):
                error_text = _wrong_type(path, value, "string")
            if error_text:
                errors.append(invalid(path, "", error_text))
        return errors


def _replicas_errors(obj: Object, path: str) -> list[FieldError]:
    value, error_text = _nested(obj, path)
    if not error_text and value is not ABSENT and (not isinstance(value, int) or isinstance(value, bool)):
        error_text = _wrong_type(path, value, "int64")
    if error_text:
        return [invalid(path, 0, error_text)]
    if value is ABSENT:
        return []
    if value < 0:
        return [invalid(path, value, "should be a non-negative integer")]
    if value > _MAX_INT32:
        return [invalid(path, value, f"should be less than or equal to {_MAX_INT32}")]
    return []


def _nested(obj: Any, path: str) -> tuple[Any, str]:
    """Return the value at a simple path such as ".spec.replicas" (ABSENT if it is missing), and an error text or "".

    The error is that a parent on the path is not an object.

    Upstream: unstructured.NestedFieldNoCopy.
    """
    names = path.removeprefix(".").split(".")
    for i, name in enumerate(names):
        if obj is None:
            return ABSENT, ""
        if not isinstance(obj, dict):
            shown = ".".join(names[: i + 1])
            return ABSENT, f".{shown} accessor error: {_go(obj)}, expected map[string]interface{{}}"
        if name not in obj:
            return ABSENT, ""
        obj = obj[name]
    return obj, ""


def _wrong_type(path: str, value: Any, expected: str) -> str:
    return f"{path} accessor error: {_go(value)}, expected {expected}"


def _go(value: Any) -> str:
    return f"{plain(value)} is of the type {type_name(value)}"
