"""Validation of `metadata` on create and update, the same for every kind.

Strategies call these functions with the object's metadata before they validate the rest.

Upstream: k8s.io/apimachinery/pkg/api/validation/objectmeta.go and apis/meta/v1/validation. For
`validate_kube_object_meta`: k8s.io/kubernetes/pkg/apis/core/validation, which has stricter rules for finalizers than
custom resources have.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from tetrapod.machinery import field
from tetrapod.machinery.error_limits import cut_path
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.golang.quoting import go_quote
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.labels import validate_label_name, validate_labels
from tetrapod.machinery.names import NameCheck, is_qualified_name, validate_namespace_name

ANNOTATIONS_SIZE_LIMIT: Final = 256 * 1024
FIELD_MANAGER_LIMIT: Final = 128
SUBRESOURCE_LIMIT: Final = 256
ORPHAN_FINALIZER: Final = "orphan"
FOREGROUND_FINALIZER: Final = "foregroundDeletion"
FIELD_IMMUTABLE: Final = "field is immutable"
NOT_NEGATIVE: Final = "must be greater than or equal to 0"
FIELD_ORDER: Final = (
    "name",
    "generateName",
    "namespace",
    "selfLink",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "labels",
    "annotations",
    "ownerReferences",
    "finalizers",
    "managedFields",
)
"""The fields of Go's ObjectMeta, in their order."""
_STANDARD_FINALIZERS: Final = frozenset({"kubernetes", ORPHAN_FINALIZER, FOREGROUND_FINALIZER})
_OWNER_KEYS: Final = ("apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion")
_REQUIRED_OWNER_KEYS: Final = _OWNER_KEYS[:4]


_IGNORED: Final = frozenset({"ownerReferences", "finalizers", "managedFields", "selfLink", "resourceVersion"})
_TYPE: Final = frozenset({"apiVersion", "kind", "metadata"})
_EMPTY: Final[tuple[Any, ...]] = (None, [], {})


def validate_object_meta(
    meta: Object, namespaced: bool, name_check: NameCheck, path: str = "metadata"
) -> list[FieldError]:
    """Return the errors of `metadata` on create, after a name was generated from `generateName`.

    A name is required and valid by `name_check`, and so is a generateName. The namespace fits the scope of the
    resource. generation is not negative. Labels, annotations, owner references, finalizers and managed fields are
    valid.

    Args:
        meta: the metadata.
        namespaced: whether the resource is namespaced. Otherwise a namespace is an error.
        name_check: the rule for names of this kind.
        path: the path of the metadata, for the errors.
    """
    errors = validate_generate_name(meta, name_check, path)
    if name := meta.get("name"):
        errors += [field.invalid(field.child(path, "name"), name, text) for text in name_check(name, False)]
    else:
        errors.append(field.required(field.child(path, "name"), "name or generateName is required"))
    errors += _validate_namespace(meta.get("namespace") or "", namespaced, field.child(path, "namespace"))
    if (generation := meta.get("generation") or 0) < 0:
        errors.append(field.invalid(field.child(path, "generation"), generation, NOT_NEGATIVE))
    errors += _validate_common(meta, path)
    errors += validate_finalizers(meta.get("finalizers") or [], field.child(path, "finalizers"))
    return errors + validate_managed_fields(meta.get("managedFields") or [], field.child(path, "managedFields"))


def validate_generate_name(meta: Object, name_check: NameCheck, path: str = "metadata") -> list[FieldError]:
    """Return the errors of `generateName` under the kind's rule for names; [] if it is unset.

    Args:
        meta: the metadata.
        name_check: the rule for names of this kind.
        path: the path of the metadata, for the errors.
    """
    base = meta.get("generateName")
    return (
        [field.invalid(field.child(path, "generateName"), base, text) for text in name_check(base, True)]
        if base
        else []
    )


def validate_kube_object_meta(
    meta: Object, namespaced: bool, name_check: NameCheck, path: str = "metadata"
) -> list[FieldError]:
    """Return the errors of `metadata` of a built-in kind on create.

    They are those of `validate_object_meta`, and errors for finalizers that are not standard ones and have no prefix.

    Args:
        meta: the metadata.
        namespaced: whether the resource is namespaced. Otherwise a namespace is an error.
        name_check: the rule for names of this kind.
        path: the path of the metadata, for the errors.
    """
    errors = validate_object_meta(meta, namespaced, name_check, path)
    return errors + validate_kube_finalizers(meta.get("finalizers") or [], field.child(path, "finalizers"))


def validate_object_meta_update(new: Object, old: Object, path: str = "metadata") -> list[FieldError]:
    """Return the errors of `metadata` on update: changes of immutable fields, and invalid values.

    A missing resourceVersion is an error. So are new finalizers if the stored object is being deleted.

    Args:
        new: the metadata of the update.
        old: the metadata of the stored object.
        path: the path of the metadata, for the errors.
    """
    errors: list[FieldError] = []
    if old.get("deletionTimestamp"):
        errors += validate_no_new_finalizers(
            new.get("finalizers") or [], old.get("finalizers") or [], field.child(path, "finalizers")
        )
    if not new.get("resourceVersion"):
        errors.append(field.invalid(field.child(path, "resourceVersion"), "", "must be specified for an update"))
    if (generation := new.get("generation") or 0) < (old.get("generation") or 0):
        errors.append(field.invalid(field.child(path, "generation"), generation, "must not be decremented"))
    for key in ("name", "namespace", "uid"):
        if (value := new.get(key) or "") != (stored := old.get(key) or ""):  # the path is made for an error only
            errors += validate_immutable(value, stored, field.child(path, key))
    for key in ("creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"):
        if (value := new.get(key)) != (stored := old.get(key)):
            errors += validate_immutable(value, stored, field.child(path, key))
    errors += _validate_common(new, path)
    return errors + validate_managed_fields(new.get("managedFields") or [], field.child(path, "managedFields"))


def repeated_update_errors(new: Object, old: Object) -> list[FieldError]:
    """Return the distinct errors of updated metadata, which the registry has already reported.

    The strategies of custom resources, of their definitions and of APIServices report them once more.

    Args:
        new: the updated object.
        old: the stored object.

    Upstream: apimachinery/pkg/api/validation/objectmeta.go, ValidateObjectMetaDeclaratively.
    """
    return field.distinct(validate_object_meta_update(new["metadata"], old["metadata"]))


def _validate_common(meta: Object, path: str) -> list[FieldError]:
    """Return the errors of labels, annotations and owner references, which create and update check in the same way.

    Args:
        meta: the metadata.
        path: the path of the metadata, for the errors.
    """
    errors: list[FieldError] = []
    if labels := meta.get("labels"):
        errors += validate_labels(labels, field.child(path, "labels"))
    if annotations := meta.get("annotations"):
        errors += validate_annotations(annotations, field.child(path, "annotations"))
    if owners := meta.get("ownerReferences"):
        errors += validate_owner_references(owners, field.child(path, "ownerReferences"))
    return errors


def _validate_namespace(namespace: str, namespaced: bool, path: str) -> list[FieldError]:
    if not namespaced:
        return [field.forbidden(path, "not allowed on this type")] if namespace else []
    if not namespace:
        return [field.required(path)]
    return [field.invalid(path, namespace, text) for text in validate_namespace_name(namespace, False)]


def validate_annotations(annotations: Mapping[str, str] | None, path: str) -> list[FieldError]:
    """Return the errors of annotations: invalid keys, and a total size beyond ANNOTATIONS_SIZE_LIMIT bytes.

    Args:
        annotations: the annotations; None counts as none.
        path: the path of the annotations, for the errors.
    """
    errors = [field.invalid(path, key, text) for key in annotations or () for text in is_qualified_name(key.lower())]
    if annotations_size(annotations or {}) > ANNOTATIONS_SIZE_LIMIT:
        errors.append(field.too_long(path, ANNOTATIONS_SIZE_LIMIT))
    return errors


def annotations_size(annotations: Mapping[str, str]) -> int:
    """Return the size of annotations in bytes: of all keys and values."""
    return sum(len(text.encode("utf-8", "surrogatepass")) for item in annotations.items() for text in item)


def validate_owner_references(owners: list[Object], path: str) -> list[FieldError]:
    """Return the errors of owner references, including those of a second reference with `controller: true`.

    Args:
        owners: the owner references.
        path: the path of the list, for the errors.
    """
    errors: list[FieldError] = []
    controller = ""
    shown: list[Object] = []  # built once and shared: a list for each error would need memory quadratic in the owners
    for i, owner in enumerate(owners):
        at = field.index(path, i)
        errors += _validate_owner_reference(owner, at)
        if owner.get("controller"):
            current = cut_path(f"{owner.get('kind', '')}/{owner.get('name', '')}")
            if controller:
                text = (
                    f'Only one reference can have Controller set to true. Found "true" in references for {controller} '
                    f"and {current}"
                )
                shown = shown or [ordered_owner(o) for o in owners]
                errors.append(field.invalid(path, shown, text))
            else:
                controller = current
    return errors


def _validate_owner_reference(owner: Object, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    api_version = owner.get("apiVersion") or ""
    if api_version and (api_version.count("/") > 1 or api_version.endswith("/")):
        errors.append(
            field.invalid(field.child(path, "apiVersion"), api_version, "must be <group>/<version> or <version>")
        )
    missing = [key for key in _REQUIRED_OWNER_KEYS if not owner.get(key)]
    errors += [field.required(field.child(path, key), "must not be empty") for key in missing]
    if api_version in ("v1", "/v1") and owner.get("kind") == "Event":
        errors.append(field.invalid(path, ordered_owner(owner), "/v1, Kind=Event is disallowed from being an owner"))
    return errors


def ordered_owner(owner: Object) -> Object:
    """Return a copy of an owner reference with its fields in Go's order, as error messages show it.

    `apiVersion`, `kind`, `name` and `uid` are "" if they are unset. `controller` and `blockOwnerDeletion` are then left
    out.
    """
    shown = {key: owner.get(key) or "" for key in _REQUIRED_OWNER_KEYS}
    shown.update({key: owner[key] for key in _OWNER_KEYS[4:] if owner.get(key) is not None})
    return shown


def validate_finalizers(finalizers: list[str], path: str) -> list[FieldError]:
    """Return the errors of finalizers: invalid names, and `orphan` together with `foregroundDeletion`.

    Args:
        finalizers: the finalizers.
        path: the path of the list, for the errors.
    """
    errors: list[FieldError] = []
    for name in finalizers:
        errors += validate_label_name(name, path)
    if ORPHAN_FINALIZER in finalizers and FOREGROUND_FINALIZER in finalizers:
        text = f"finalizer {ORPHAN_FINALIZER} and {FOREGROUND_FINALIZER} cannot be both set"
        errors.append(field.invalid(path, finalizers, text))
    return errors


def validate_kube_finalizers(finalizers: Iterable[str], path: str) -> list[FieldError]:
    """Return an error for each finalizer of a built-in kind that is neither a standard one nor has a prefix.

    Args:
        finalizers: the finalizers.
        path: the path of the list, for the errors.
    """
    text = "name is neither a standard finalizer name nor is it fully qualified"
    return [
        field.invalid(field.index(path, i), name, text)
        for i, name in enumerate(finalizers)
        if "/" not in name and name not in _STANDARD_FINALIZERS
    ]


def validate_no_new_finalizers(new: list[str], old: list[str], path: str) -> list[FieldError]:
    """Return an error if an update adds finalizers to an object that is being deleted, else [].

    Args:
        new: the finalizers of the update.
        old: the finalizers of the stored object, which is being deleted.
        path: the path of the list, for the error.
    """
    extra = sorted(set(new) - set(old))
    if not extra:
        return []
    shown = ", ".join(map(go_quote, extra))
    text = "no new finalizers can be added if the object is being deleted, found new finalizers"
    return [field.forbidden(path, f"{text} []string{{{shown}}}")]


def validate_managed_fields(entries: list[Object], path: str) -> list[FieldError]:
    """Return the errors of managed fields.

    operation is Apply or Update, fieldsType is FieldsV1 or unset, and manager and subresource are not too long. The
    field sets (`fieldsV1`) are not checked.

    Args:
        entries: the entries of managedFields.
        path: the path of the list, for the errors.
    """
    errors: list[FieldError] = []
    for i, entry in enumerate(entries):
        at = field.index(path, i)
        operation = entry.get("operation", "")
        if not operation:
            errors.append(field.required(field.child(at, "operation"), "must not be empty"))
        elif operation not in ("Apply", "Update"):
            errors.append(field.not_supported(field.child(at, "operation"), operation, ("Apply", "Update")))
        if (kind := entry.get("fieldsType", "")) not in ("", "FieldsV1"):
            errors.append(field.invalid(field.child(at, "fieldsType"), kind, "must be `FieldsV1`"))
        errors += validate_field_manager(entry.get("manager", ""), field.child(at, "manager"))
        if len(entry.get("subresource", "").encode()) > SUBRESOURCE_LIMIT:
            errors.append(field.too_long(field.child(at, "subresource"), SUBRESOURCE_LIMIT))
    return errors


def validate_field_manager(manager: str, path: str) -> list[FieldError]:
    """Return the errors of a field manager's name: more than FIELD_MANAGER_LIMIT bytes, or unprintable characters.

    Args:
        manager: the name.
        path: the path of the field or query parameter, for the errors.
    """
    errors: list[FieldError] = []
    if manager.isascii() and manager.isprintable() and len(manager) <= FIELD_MANAGER_LIMIT:
        return errors
    if len(manager.encode("utf-8", "surrogatepass")) > FIELD_MANAGER_LIMIT:
        errors.append(field.too_long(path, FIELD_MANAGER_LIMIT))
    position = 0
    for char in manager:
        if not char.isprintable():
            errors.append(field.invalid(path, manager, f"invalid character U+{ord(char):04X} (at position {position})"))
        position += len(char.encode("utf-8", "surrogatepass"))
    return errors


def validate_immutable(new: Any, old: Any, path: str) -> list[FieldError]:
    """Return an error if the new value of a field differs from the stored one, else [].

    Args:
        new: the value in the update.
        old: the value in the stored object.
        path: the path of the field, for the error.
    """
    return [] if new == old else [field.invalid(path, new, FIELD_IMMUTABLE)]


def only_owners_and_finalizers_differ(new: Object, old: Object) -> bool:
    """Return whether an update changes nothing except owner references, finalizers, managedFields and resourceVersion.

    Null, empty lists and empty objects equal missing values. `apiVersion` and `kind` are ignored.

    Upstream: pkg/registry/rbac/helpers.go, IsOnlyMutatingGCFields.
    """
    return _compared(new) == _compared(old)


def _compared(obj: Object) -> dict[str, Any]:
    rest = {key: value for key, value in obj.items() if key not in _TYPE and value not in _EMPTY}
    metadata = {
        key: value for key, value in obj["metadata"].items() if key not in _IGNORED and value not in (*_EMPTY, "")
    }
    return {**rest, "metadata": metadata}
