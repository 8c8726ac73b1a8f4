"""The patch types that change a whole object: JSON patch, merge patch and strategic merge patch.

The result is decoded like a request body. A type error, or in Strict mode an unknown or duplicate field, is a 422
that quotes the patched object (for strategic merge patches, the patch itself).
Upstream: staging/src/k8s.io/apiserver/pkg/endpoints/handlers/patch.go, jsonPatcher and smpPatcher
"""

from __future__ import annotations

from typing import Any, Final

from tetrapod.generic.endpoints.decoding import ShapeError, unknown_fields
from tetrapod.generic.endpoints.quoted_objects import (
    Touched,
    in_go_order,
    sort_touched,
    sorted_members,
    touched_by_json_patch,
    touched_by_merge,
)
from tetrapod.generic.endpoints.scheme import (
    INTERNAL,
    is_registered_internally,
    not_registered_internally,
    unknown_conversion,
)
from tetrapod.generic.endpoints.scope import Scope
from tetrapod.generic.endpoints.struct_conversion_errors import decoding_error
from tetrapod.machinery.copying import copy_object
from tetrapod.machinery.failure import Failure
from tetrapod.machinery.field import invalid
from tetrapod.machinery.golang import formatting
from tetrapod.machinery.gvk import GroupKind, GroupVersion, GroupVersionKind, Object
from tetrapod.machinery.patch import json_patch, merge, strategic
from tetrapod.machinery.schema.number_conversion import as_filled
from tetrapod.machinery.schema.unknown_fields import find as find_unknown
from tetrapod.machinery.serializer import duplicate_members
from tetrapod.machinery.serializer import json as json_serializer
from tetrapod.machinery.serializer.duplicate_members import as_written
from tetrapod.machinery.serializer.errors import Decoded, DecodeError
from tetrapod.machinery.serializer.type_meta import NO_VERSION, missing_kind, missing_version, recognize
from tetrapod.machinery.status import StatusError, bad_request, internal_error, not_found
from tetrapod.machinery.status import invalid as invalid_object

INVALID: Final = "invalid JSON patch"


class PatchMechanism:
    """One patch request: computes the new object from the stored one.

    `warnings` and `unchanged` are those of the last attempt; earlier attempts conflicted with another write.

    Args:
        scope: the endpoint.
        validation: fieldValidation ("Ignore", "Warn" or "Strict").
        manager: the name of the field manager.

    Attributes:
        unchanged: whether upstream keeps the stored object, except for its managed fields, instead of a new one.
        patches_text: whether upstream applies the patch to the JSON text of the object, in which the members of
            RawExtension fields have the order in which they were sent.
    """

    patches_text = False

    def __init__(self, scope: Scope, validation: str, manager: str) -> None:
        self.scope = scope
        self.validation = validation
        self.manager = manager
        self.warnings: list[str] = []
        self.unchanged = False

    @property
    def document(self) -> Any:
        """The decoded body, or None if it could not be parsed, which `revise` reports.

        The caller passes it to `Context.discard` after the request, which frees a large one in a thread.
        """
        raise NotImplementedError

    @property
    def may_grow(self) -> bool:
        """Whether the new object can be much larger than the patch and the stored object."""
        return False

    def touched(self, current: Object | None) -> Touched | None:
        """Return the objects and lists whose members upstream sorts; None for no object.

        `current` is the object before the patch. By default it is all of them, as Go encodes maps.
        """
        return Touched(deep=True)

    def create(self, name: str) -> Object:
        """Return the new object, for a name that does not exist yet.

        Raises:
            StatusError: 404, unless the patch is an apply.
        """
        raise not_found(self.scope.definition.group_resource, name)

    def revise(self, current: Object) -> Object:
        """Return the object to store, in the request's version, with updated managedFields.

        Args:
            current: a copy of the stored object in the request's version, which may be modified.

        Raises:
            StatusError: the patch cannot be applied, or its result is invalid (422).
        """
        raise NotImplementedError


class Patching(PatchMechanism):
    """A patch with a JSON body. Subclasses parse and apply it.

    Args:
        scope: the endpoint.
        body: the request body.
        validation: fieldValidation ("Ignore", "Warn" or "Strict").
        manager: the name of the field manager.

    Attributes:
        patch: the result of `parse`; None if `parse` failed. `revise` then raises its error.
        strict_errors: the texts about duplicate fields in the body, each preceded by `strict_prefix`.
        strict_prefix: a constant of the subclass; "" for none.

    Raises:
        StatusError: 400, the body is not JSON.
    """

    strict_prefix = ""

    def __init__(self, scope: Scope, body: bytes, validation: str, manager: str) -> None:
        super().__init__(scope, validation, manager)
        try:
            decoded = json_serializer.decode(body, unstructured=True)
        except DecodeError:
            raise bad_request(INVALID) from None
        self.patch: Any = None
        self._parse_error: Failure[StatusError] | None = None
        try:
            self.patch = self.parse(decoded)
        except StatusError as error:  # reported by `revise`: a missing object is reported first
            self._parse_error = Failure(error)
        self.strict_errors: list[str] = [self.strict_prefix + text for text in decoded.duplicates]

    @property
    def document(self) -> Any:
        return self.patch

    def parse(self, decoded: Decoded) -> Any:
        """Return the patch in the form that `apply` uses, from the decoded body.

        Raises:
            StatusError: 400, the body is not a patch.
        """
        raise NotImplementedError

    def apply(self, current: Object) -> Object:
        """Return the patched object, which shares no parts with `current` and may have any shape.

        `current` is not modified.

        Raises:
            StatusError: the patch does not fit the object (400 or 422) or makes it too large (413).
        """
        raise NotImplementedError

    def quoted(self, current: Object) -> str:
        """Return the text that error messages quote.

        It is the patched object for a JSON patch or merge patch, and the patch for a strategic merge patch.

        Args:
            current: the object before the patch.

        Raises:
            StatusError: the patch does not fit the object (400 or 422) or makes it too large (413).
        """
        raise NotImplementedError

    def revise(self, current: Object) -> Object:
        if self._parse_error is not None:
            raise self._parse_error.error()
        scope = self.scope
        patched = self.apply(current)
        try:
            unknown = self._shape(patched, current)
        except ShapeError as error:
            raise self._invalid_patch(self.quoted(current), self.type_text(error, current)) from None
        strict_errors = [
            *self.strict_errors,
            *(self._unknown_field_texts(unknown, current) if unknown or self.strict_errors else ()),
        ]
        if strict_errors and self.validation == "Strict":
            raise self._invalid_patch(self.quoted(current), f"strict decoding error: {', '.join(strict_errors)}")
        self.warnings = strict_errors if self.validation == "Warn" else []
        if scope.decoder.custom:
            self._check_custom_kind(patched)
        return patched if scope.field_manager is None else scope.field_manager.update(current, patched, self.manager)

    def _unknown_field_texts(self, unknown: list[str], current: Object) -> list[str]:
        """Return the texts for the paths of unknown fields, in upstream's order.

        `current`, the object before the patch, is for subclasses.
        """
        return unknown_fields(sorted(unknown))

    def _shape(self, patched: Any, current: Object) -> list[str]:
        decoder = self.scope.decoder
        if not isinstance(patched, dict):
            raise ShapeError(
                f"json: cannot unmarshal {formatting.json_kind(patched)} into Go value of type {decoder.kind.kind}"
            )
        gvk = self._patched_kind(patched, current)
        decoder.check_kind(gvk, patched)
        if gvk != decoder.kind and not decoder.custom:
            # Unlike a complete object, a patch may name another version of the kind. It was applied to an object in
            # the request's version, so the result is in that version.
            return decoder.shape(patched, decoder.kind)
        return decoder.shape(patched, gvk)

    def _check_custom_kind(self, patched: Object) -> None:
        """Check the kind of a patched custom object. A patch of the status cannot change it.

        Raises:
            StatusError: 422 for another kind or apiVersion; 500 for an apiVersion without a version.
        """
        decoder = self.scope.decoder
        gvk = GroupVersion.parse(patched.get("apiVersion") or "").with_kind(patched["kind"])
        if not gvk.version:
            raise internal_error(NO_VERSION)
        if gvk == decoder.kind:
            return
        if self.scope.subresource != "status":
            raise invalid_object(gvk.group_kind, patched["metadata"].get("name") or "", decoder.kind_errors(gvk))
        patched["apiVersion"], patched["kind"] = decoder.kind.api_version, decoder.kind.kind

    def _patched_kind(self, patched: Object, current: Object) -> GroupVersionKind:
        expected = self.scope.decoder.kind
        try:
            _, api_version, kind = recognize(patched)
        except DecodeError as error:
            raise ShapeError(str(error)) from None
        if self.scope.decoder.custom:
            if not kind:
                raise ShapeError(missing_kind(self.quoted(current)))
            return GroupVersion.parse(api_version).with_kind(kind)
        group, version = GroupVersion.parse(api_version)
        if version in ("", INTERNAL) and group in ("", expected.group):
            self._check_unversioned(kind, expected)
            # Upstream decodes this into its internal type, which has no JSON field names, so that no metadata is
            # found.
            if self.validation == "Warn":
                self.warnings = unknown_fields(sorted(patched.keys() - {"kind", "apiVersion"}))
            text = "the name of the object ({} based on URL) was undeterminable: name must be provided"
            raise bad_request(text.format(current["metadata"]["name"]))
        if not version:
            raise ShapeError(missing_version(self.quoted(current)))
        return GroupVersionKind(group, version, kind or expected.kind)

    @staticmethod
    def _check_unversioned(kind: str, expected: GroupVersionKind) -> None:
        """Check the kind of a patched object without apiVersion, which upstream decodes into its internal type.

        Raises:
            ShapeError: it is not the expected one.
        """
        if kind not in ("", expected.kind):
            if not is_registered_internally(expected.group, kind):
                raise ShapeError(not_registered_internally(expected.group, kind))
            patched = GroupVersionKind(expected.group, INTERNAL, kind)
            raise ShapeError(unknown_conversion(patched, expected.group, expected.kind))

    def type_text(self, error: ShapeError, current: Object) -> str:
        """Return the error text for a value of a wrong type.

        If there are several, it is the one that upstream finds first.

        Args:
            error: the first error that our decoder found.
            current: the object before the patch.
        """
        raise NotImplementedError

    @staticmethod
    def _invalid_patch(quoted: str, text: str) -> StatusError:
        return invalid_object(GroupKind("", ""), "", [invalid("patch", quoted, text)])


class DocumentPatching(Patching):
    """A patch that upstream applies to the JSON text of an object (JSON patch, merge patch).

    Error messages quote the text of the patched object, which `quoted` computes. As upstream, members are sorted in the
    objects that the patch traversed. In other objects of a built-in kind they are in the order of the Go structs, and
    those of a custom object are all sorted. Values that the patch inserted keep the order in which they were sent.
    """

    patches_text = True

    def touched(self, current: Object | None) -> Touched | None:
        """Return the objects and lists that the patch traverses, or None if it traverses nothing.

        `current` is the object before the patch.
        """
        raise NotImplementedError

    def _apply_patch(self, document: Any) -> Any:
        """Return the patched document, which may share parts with `document` and the patch.

        Values that the patch inserts keep the order of their members, and those of a JSON patch also their duplicates.
        A merge patch drops members that are null.

        Raises:
            StatusError: 400, the patch does not fit the document. For a JSON patch also 422, an operation failed; 413,
                the document becomes too large.
        """
        raise NotImplementedError

    def quoted(self, current: Object) -> str:
        """Return the patched object as Go's encoding/json writes it: `<`, `>` and `&` as Unicode escapes.

        `current` is the object before the patch.
        """
        return json_serializer.go_escaped(self._text(current)).decode()

    def _text(self, current: Object) -> bytes:
        """Return the patched object as upstream's JSON text, with members in upstream's order.

        Values that the patch inserted have the form in which they were sent. `current` is the object before the patch.

        Raises:
            StatusError: the patch does not fit the object (400 or 422) or makes it too large (413).
        """
        document = (
            sorted_members(current) if self.scope.decoder.custom else in_go_order(current, self.scope.decoder.schema)
        )
        return duplicate_members.dumps(sort_touched(self._apply_patch(document), self.touched(current)))

    def type_text(self, error: ShapeError, current: Object) -> str:
        try:
            self._shape(
                json_serializer.decode(self._text(current), unstructured=self.scope.decoder.custom).obj, current
            )
        except ShapeError as first:
            return str(first)
        return str(error)

    def _unknown_field_texts(self, unknown: list[str], current: Object) -> list[str]:
        """Return the texts for duplicate and unknown fields, in the order in which upstream's decoder reports them.

        For a custom object, the order is: duplicate fields, unknown fields of metadata, other unknown fields.

        Args:
            unknown: the paths of the unknown fields. Duplicates are found in the text of the patched object.
            current: the object before the patch.
        """
        text = self._text(current)
        if not self.scope.decoder.custom:
            return json_serializer.strict_errors(text, unknown, self.scope.decoder.schema)
        in_order = sorted(unknown, key=lambda path: (0, path) if path.startswith("metadata.") else (1, ""))
        return [*json_serializer.decode(text, unstructured=True).duplicates, *unknown_fields(in_order)]


class MergePatching(DocumentPatching):
    """An `application/merge-patch+json` patch."""

    def parse(self, decoded: Decoded) -> Any:
        return merge.parse(decoded.obj)

    def apply(self, current: Object) -> Object:
        return copy_object(self._apply_patch(current))

    def _apply_patch(self, document: Any) -> Any:
        return merge.apply(document, self.patch)

    def touched(self, current: Object | None) -> Touched | None:
        return touched_by_merge(self.patch, current)


class JSONPatching(DocumentPatching):
    """An `application/json-patch+json` patch."""

    strict_prefix = "json patch "

    def parse(self, decoded: Decoded) -> Any:
        return json_patch.parse(decoded.obj)

    def __init__(self, scope: Scope, body: bytes, validation: str, manager: str) -> None:
        super().__init__(scope, body, validation, manager)
        known = ("op", "path", "from", "value")
        unknown = [f"[{i}].{key}" for i, op in enumerate(self.patch or ()) for key in op if key not in known]
        self._written = as_written(body) if self.strict_errors else self.patch
        if unknown or self.strict_errors:
            self.strict_errors = [self.strict_prefix + text for text in json_serializer.strict_errors(body, unknown)]

    @property
    def may_grow(self) -> bool:
        return any(operation.get("op") == "copy" for operation in self.patch or ())

    def apply(self, current: Object) -> Object:
        return copy_object(json_patch.apply(current, self.patch))

    def _apply_patch(self, document: Any) -> Any:
        return json_patch.apply(document, self._written)

    def touched(self, current: Object | None) -> Touched | None:
        return touched_by_json_patch(self.patch)


class StrategicPatching(Patching):
    """An `application/strategic-merge-patch+json` patch.

    Attributes:
        left: the patch as the last call of `apply` left it: applying removes directives from it. Upstream quotes this
            rest in error messages. None before the first call.
    """

    left: Any = None

    def parse(self, decoded: Decoded) -> Any:
        return strategic.parse(decoded.obj)

    def apply(self, current: Object) -> Object:
        node = self.scope.decoder.schema
        self.left = copy_object(self.patch)
        return as_filled(strategic.apply(current, self.left, node), node)

    def quoted(self, current: Object) -> str:
        return formatting.plain(self.left)

    def _shape(self, patched: Any, current: Object) -> list[str]:
        for name in ("apiVersion", "kind"):  # the path determines the type, not the patch
            if not isinstance(patched.get(name), str | None):
                raise ShapeError(f"{name} is no text")
        return self.scope.decoder.shape(patched, self.scope.decoder.kind)

    def _unknown_field_texts(self, unknown: list[str], current: Object) -> list[str]:
        """Return the texts for unknown fields, whose paths lack the keys of maps.

        Upstream: k8s.io/apimachinery/pkg/runtime/converter.go, mapFromUnstructured
        """
        if unknown:
            unknown = find_unknown(self.scope.decoder.schema, self.apply(current), keys=False)
        return unknown_fields(sorted(unknown))

    def type_text(self, error: ShapeError, current: Object) -> str:
        return decoding_error(self.apply(current), self.scope.decoder.schema)
