"""VolumeAttachment (upstream: pkg/apis/storage/validation/validation.go)."""

from __future__ import annotations

from typing import Final

from tetrapod.core.validation import shown
from tetrapod.core.validation.names import complaints
from tetrapod.core.validation.storage_classes import provisioner
from tetrapod.core.validation.volume_sources import csi_driver_name
from tetrapod.machinery import field
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.names import is_dns1123_subdomain

_ONE_SOURCE: Final = "must specify exactly one of inlineVolumeSpec and persistentVolumeName"
_MESSAGE: Final = 1024
_METADATA: Final = 256 * 1024


def validate(obj: Object) -> list[FieldError]:
    spec = obj.get("spec") or {}
    errors = provisioner(spec.get("attacher") or "", "spec.attacher") + _source(spec.get("source") or {})
    errors += complaints(is_dns1123_subdomain, spec.get("nodeName") or "", "spec.nodeName")
    if attacher := spec.get("attacher"):
        errors += csi_driver_name(attacher, "spec.attacher") if len(attacher) > 63 else []
    if (name := (spec.get("source") or {}).get("persistentVolumeName")) is not None:
        errors += complaints(is_dns1123_subdomain, name, "spec.source.persistentVolumeName")
    return errors


def _source(source: Object) -> list[FieldError]:
    name, inline, path = source.get("persistentVolumeName"), source.get("inlineVolumeSpec"), "spec.source"
    if name is None and inline is None:
        return [field.required(path, _ONE_SOURCE)]
    if name is not None and inline is not None:
        return [field.forbidden(path, _ONE_SOURCE)]
    if name is not None and not name:
        return [field.required(f"{path}.persistentVolumeName", "must specify non empty persistentVolumeName")]
    return []


def validate_update(new: Object, old: Object) -> list[FieldError]:
    spec, before = new.get("spec") or {}, old.get("spec") or {}
    return [] if shown.same(spec, before) else [field.invalid("spec", _shown(spec), "field is immutable")]


def _shown(spec: Object) -> Object:
    source = spec.get("source") or {}
    return {
        "Attacher": spec.get("attacher") or "",
        "Source": {"PersistentVolumeName": source.get("persistentVolumeName"), "InlineVolumeSpec": source.get("inlineVolumeSpec")},
        "NodeName": spec.get("nodeName") or "",
    }


def validate_status(new: Object, old: Object) -> list[FieldError]:
    status = new.get("status") or {}
    metadata = status.get("attachmentMetadata") or {}
    path = "status.attachmentMetadata"
    errors = [field.required(path) for key in metadata if not key]
    if sum(len(key.encode()) + len(value.encode()) for key, value in metadata.items()) > _METADATA:
        errors.append(field.too_long(path, _METADATA))
    messages = {key: (status.get(key) or {}).get("message") or "" for key in ("attachError", "detachError")}
    return errors + [field.too_long(f"status.{key}.message", _MESSAGE) for key, text in messages.items() if len(text.encode()) > _MESSAGE]
