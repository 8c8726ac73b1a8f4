"""The definition of VolumeAttachments, with their validation and table columns.

Upstream: pkg/registry/storage/volumeattachment/strategy.go and pkg/apis/storage/validation.
"""

from __future__ import annotations

from typing import Any, Final

from tetrapod.core.cells import AGE, NAME, age, name_of, spec_of, status_of
from tetrapod.core.kind_strategy import KindStrategy
from tetrapod.core.v1.persistent_volumes.validation import inline_volume
from tetrapod.core.validation.differences import internal
from tetrapod.core.validation.names import IMMUTABLE, csi_driver_name, errors_from, in_range
from tetrapod.generic.registry.builtin import builtin
from tetrapod.generic.registry.definition import ResourceDefinition
from tetrapod.generic.registry.hand_written import HandWritten, Text, lower_case
from tetrapod.generic.registry.status import ALL_METADATA, StatusStrategy
from tetrapod.machinery import field
from tetrapod.machinery.equality import same
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.names import is_dns1123_subdomain, is_long_name_caseless
from tetrapod.machinery.table import Column, TableConvertor

_ONE_SOURCE: Final = "must specify exactly one of inlineVolumeSpec and persistentVolumeName"
_DRIVER: Final = 63
_MESSAGE: Final = 1024
_METADATA: Final = 256 * 1024


_FORM: Final = HandWritten(
    "spec.attacher",
    "spec.source^",
    "spec.nodeName",
    "spec.source",
    "status",
    "spec#",
    texts={
        "FieldValueInvalid spec.attacher": Text(lower_case),
        "FieldValueTooLong spec.attacher": Text(f"may not be more than {_DRIVER} bytes"),
        "FieldValueInvalid spec": Text(
            former=IMMUTABLE, value=lambda _, obj: internal("VolumeAttachmentSpec", obj.get("spec") or {})
        ),
    },
)


def definition() -> ResourceDefinition:
    """Return the resource definition of VolumeAttachments: versions, strategy, subresources and columns."""
    strategy = KindStrategy(
        hand_written=_FORM,
        validator=validate,
        whole_update_validator=validate_update,
        revalidates_generate_name="before finalizers",
        has_status=True,
        initial_status={"attached": False},
        allow_unconditional_update=False,
        return_deleted_object=True,
    )
    status = StatusStrategy(
        strategy, keep_metadata=ALL_METADATA, validate=validate_status, revalidates_generate_name="before finalizers"
    )
    return builtin("storage.k8s.io", "volumeattachments", strategy, table=TABLE, subresources={"status": status})


def validate(obj: Object) -> list[FieldError]:
    """Validate the spec and the status of a new VolumeAttachment.

    It has one source, which is the name of a volume or an inline volume. The names of attacher and node are valid.
    """
    return _written(obj) + _attacher((obj.get("spec") or {}).get("attacher") or "")


def _written(obj: Object) -> list[FieldError]:
    """Validate a VolumeAttachment by the rules that upstream writes by hand.

    They are all rules of `validate` but that of spec.attacher.
    """
    spec = obj.get("spec") or {}
    errors = _source(spec.get("source") or {})
    errors += errors_from(is_dns1123_subdomain, spec.get("nodeName") or "", "spec.nodeName")
    errors += _status(obj.get("status") or {})
    if (name := (spec.get("source") or {}).get("persistentVolumeName")) is not None:
        errors += errors_from(is_dns1123_subdomain, name, "spec.source.persistentVolumeName")
    return errors


def _attacher(name: str) -> list[FieldError]:
    path = "spec.attacher"
    if not name:
        return [field.required(path)]
    errors = errors_from(is_long_name_caseless, name, path)
    return [*errors, field.too_many_characters(path, _DRIVER)] if len(name) > _DRIVER else errors


def _source(source: Object) -> list[FieldError]:
    name, inline, path = source.get("persistentVolumeName"), source.get("inlineVolumeSpec"), "spec.source"
    if name is None and inline is None:
        return [field.required(path, _ONE_SOURCE)]
    if name is not None and inline is not None:
        return [field.forbidden(path, _ONE_SOURCE)]
    if name is not None and not name:
        return [field.required(f"{path}.persistentVolumeName", "must specify non empty persistentVolumeName")]
    return inline_volume(inline, f"{path}.inlineVolumeSpec") if inline is not None else []


def validate_update(new: Object, old: Object) -> list[FieldError]:
    """Validate an updated VolumeAttachment as a new one, spec and status; its spec is immutable."""
    if same(new.get("spec") or {}, old.get("spec") or {}):
        return validate(new)
    # The rules declared on the field do not run for a changed spec.
    attacher = csi_driver_name((new.get("spec") or {}).get("attacher") or "", "spec.attacher")
    return [*attacher, *_written(new), field.invalid("spec", None, "field is immutable")]


def validate_status(new: Object, old: Object) -> list[FieldError]:
    """Validate an update of `volumeattachments/status`, by the rules of `validate_update`."""
    return validate_update(new, old)


def _status(status: Object) -> list[FieldError]:
    metadata = status.get("attachmentMetadata") or {}
    path = "status.attachmentMetadata"
    errors: list[FieldError] = []
    if sum(len(key.encode()) + len(value.encode()) for key, value in metadata.items()) > _METADATA:
        errors.append(field.too_long(path, _METADATA))
    return errors + [
        error for key in ("attachError", "detachError") for error in _failure(status.get(key) or {}, f"status.{key}")
    ]


def _failure(failure: Object, path: str) -> list[FieldError]:
    errors = (
        [field.too_long(f"{path}.message", _MESSAGE)] if len((failure.get("message") or "").encode()) > _MESSAGE else []
    )
    if (code := failure.get("errorCode")) is not None and code < 0:
        errors += in_range(code, 0, 2**31 - 1, f"{path}.errorCode")
    return errors


def _row(obj: Object) -> list[Any]:
    spec = spec_of(obj)
    return [
        name_of(obj),
        spec.get("attacher", ""),
        (spec.get("source") or {}).get("persistentVolumeName") or "",
        spec.get("nodeName", ""),
        bool(status_of(obj).get("attached")),
        age(obj),
    ]


TABLE: Final = TableConvertor(
    (
        NAME,
        Column("Attacher", format="name"),
        Column("PV"),
        Column("Node"),
        Column("Attached", "boolean"),
        AGE,
    ),
    _row,
)
