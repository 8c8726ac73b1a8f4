"""Migration from client-side to server-side `kubectl apply`: the last-applied annotation and managed fields.

If the manager `kubectl` applies, it takes over fields that its last client-side apply set and that have not changed
since. The annotation is kept up to date for clients that go back to client-side apply.

Upstream: k8s.io/apimachinery/pkg/util/managedfields/internal (lastappliedmanager.go, lastappliedupdater.go,
lastapplied.go).
"""

from __future__ import annotations

from typing import Any, Final

import orjson

from tetrapod.machinery.fieldmanager import fieldset
from tetrapod.machinery.fieldmanager.compare import compare
from tetrapod.machinery.fieldmanager.fieldset import FieldSet
from tetrapod.machinery.fieldmanager.pathelement import scalar_json
from tetrapod.machinery.fieldmanager.to_field_set import field_set
from tetrapod.machinery.fieldmanager.typed import SchemaError, Type
from tetrapod.machinery.fieldmanager.updater import Conflict
from tetrapod.machinery.fieldmanager.validate import validate
from tetrapod.machinery.gvk import Object

KUBECTL: Final = "kubectl"
ANNOTATION: Final = "kubectl.kubernetes.io/last-applied-configuration"
_MAX_ANNOTATIONS: Final = 256 * 1024


def remaining_conflicts(conflicts: list[Conflict], live: Object, version: str, value_type: Type) -> list[Conflict]:
    """Return the conflicts that remain if the fields of the last client-side apply may be taken over.

    Those are fields that the annotation sets and that still have its values. All conflicts remain if the annotation is
    missing or unusable.

    Args:
        conflicts: the conflicts of a server-side apply.
        live: the existing object in `version`.
        version: the `apiVersion` of the apply.
        value_type: the type of the kind in that version.
    """
    allowed = _unchanged_since(live, version, value_type)
    if allowed is None:
        return conflicts
    return [conflict for conflict in conflicts if not fieldset.has(allowed, conflict.path)]


def _unchanged_since(live: Object, version: str, value_type: Type) -> FieldSet | None:
    """Return the fields that the last-applied annotation of an object sets and that still have those values.

    The result is None if the annotation is missing or unusable.

    Args:
        live: the object in `version`.
        version: its `apiVersion`, which the annotation must have too.
        value_type: the type of the kind.
    """
    text = _annotations(live).get(ANNOTATION)
    if not text or validate(live, value_type):
        return None
    try:
        applied = orjson.loads(text)
        if (
            not isinstance(applied, dict)
            or applied.get("apiVersion") != version
            or not applied.get("kind")
            or validate(applied, value_type)
        ):
            return None
        changes = compare(applied, live, value_type)
        return fieldset.difference(
            fieldset.difference(field_set(applied, value_type), changes.touched), changes.removed
        )
    except (orjson.JSONDecodeError, TypeError, SchemaError):
        return None


def with_annotation(merged: Object, config: Object) -> Object:
    """Return a merged object with its last-applied annotation replaced by the applied configuration.

    An object without the annotation is returned as it is. The annotation is removed if the annotations are too large
    with it.

    Args:
        merged: the merged object, which is not modified.
        config: the applied configuration.
    """
    if not _annotations(merged).get(ANNOTATION):
        return merged
    metadata = dict(config.get("metadata") or {})
    if isinstance(metadata.get("annotations"), dict):
        metadata["annotations"] = {k: v for k, v in metadata["annotations"].items() if k != ANNOTATION}
    text = scalar_json({**config, "metadata": metadata}) + "\n"
    annotations = {**_annotations(merged), ANNOTATION: text}
    if sum(len(k.encode()) + len(v.encode()) for k, v in annotations.items()) > _MAX_ANNOTATIONS:
        del annotations[ANNOTATION]
    return {**merged, "metadata": {**merged["metadata"], "annotations": annotations}}


def _annotations(obj: Object) -> dict[str, Any]:
    annotations = (obj.get("metadata") or {}).get("annotations")
    return annotations if isinstance(annotations, dict) else {}
