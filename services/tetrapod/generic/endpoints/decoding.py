"""Decodes request bodies to objects: syntax, kind and version, types, unknown and duplicate fields, defaults.

A built-in object is normalized to the form that kube-apiserver would write (machinery/schema/decode.py). A custom
object is pruned and defaulted by its structural schema.
Upstream: staging/src/k8s.io/apiserver/pkg/endpoints/handlers/create.go; rest.go, transformDecodeError;
apiextensions-apiserver's customresource_handler.go, schemaCoercingDecoder
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import orjson

from tetrapod.generic.endpoints.scheme import (
    INTERNAL,
    SCHEME,
    is_registered,
    not_registered,
    same_family,
    structure_of,
    unknown_conversion,
)
from tetrapod.generic.http.negotiation.accept import CBOR, JSON, PROTOBUF
from tetrapod.generic.observability.tracing.spans import current_span
from tetrapod.generic.registry.context import KindMismatch
from tetrapod.generic.scheduling.offload import is_large, offloaded
from tetrapod.machinery import protobuf
from tetrapod.machinery.error_limits import more, recorded
from tetrapod.machinery.field import FieldError, invalid
from tetrapod.machinery.golang.quoting import go_quote
from tetrapod.machinery.gvk import GroupVersion, GroupVersionKind, Object
from tetrapod.machinery.raw_extensions import add_go_texts, raw_paths
from tetrapod.machinery.schema import custom_resources
from tetrapod.machinery.schema import decode as typed
from tetrapod.machinery.schema.decode_errors import Mismatch
from tetrapod.machinery.schema.objectmeta import CoerceError
from tetrapod.machinery.schema_node import SchemaNode
from tetrapod.machinery.serializer import json as json_serializer
from tetrapod.machinery.serializer import yaml as yaml_serializer
from tetrapod.machinery.serializer.errors import Decoded, DecodeError, NumberError
from tetrapod.machinery.serializer.raw_json import remember
from tetrapod.machinery.serializer.type_meta import (
    NO_VERSION,
    missing_kind,
    missing_version,
    recognize,
    summary,
    syntax_text,
)
from tetrapod.machinery.status import StatusError, bad_request


class ShapeError(Exception):
    """An object is of another kind, or has a value of a wrong type; the text is that of upstream's decoder."""


class Decoder:
    """The decoder of request bodies of one kind in one version."""

    def __init__(
        self,
        kind: GroupVersionKind,
        schema: Callable[[], SchemaNode],
        default: Callable[[Object], None] | None,
        *,
        custom: bool = False,
        unregistered: bool = False,
        also_accepts: frozenset[str] = frozenset(),
        schema_in: Callable[[str], SchemaNode] | None = None,
    ) -> None:
        """Create a decoder.

        Args:
            kind: the expected kind and version.
            schema: returns the schema; called at first use.
            default: sets the version's own defaults in an object, in place; None if it has none besides the schema's.
            custom: whether it is a custom resource.
            unregistered: whether the kind is built in, but is a subresource of a custom resource. Upstream's scheme
                does not contain it then, so its errors do not name the kind.
            also_accepts: other apiVersions of the kind, with the same structure, that a body may have.
            schema_in: returns the schema of a custom kind in any version. It is used to report unknown fields of a body
                before it is rejected for its version.
        """
        self.kind = kind
        self.custom = custom
        self._unregistered = unregistered
        self._also_accepts = also_accepts
        self._schema = schema
        self._schema_in = schema_in
        self._default = default

    @property
    def schema(self) -> SchemaNode:
        return self._schema()

    async def decode_any(self, body: bytes, media_type: str, validation: str, warnings: list[str]) -> Object:
        """Return the object in a body, normalized and with defaults, decoding it in a thread if it is large.

        Args:
            body: the request body.
            media_type: JSON, YAML, protobuf or CBOR, without parameters.
            validation: "Ignore", "Warn" (texts about unknown and duplicate fields are added to `warnings`) or "Strict"
                (they are errors).
            warnings: receives the texts for Warning headers.

        Raises:
            StatusError: 400, the body cannot be decoded or has an object of another kind. A custom object of another
                kind is returned (`expect_kind`).
        """
        span = current_span()
        span.event("About to convert to expected version")
        obj = await offloaded(is_large(body), self.decode, body, media_type, validation, warnings)
        span.event("Conversion done")
        return obj

    def decode(self, body: bytes, media_type: str, validation: str, warnings: list[str]) -> Object:
        """Return the object in a body, normalized and with defaults.

        Args:
            body: the request body.
            media_type: JSON, YAML, protobuf or CBOR, without parameters.
            validation: "Ignore", "Warn" (texts about unknown and duplicate fields are added to `warnings`) or "Strict"
                (they are errors).
            warnings: receives the texts for Warning headers.

        Raises:
            StatusError: 400, the body cannot be decoded or has an object of another kind. A custom object of another
                kind is returned (`expect_kind`).
        """
        decoded = self._parse(body, media_type)
        try:
            obj, api_version, kind = recognize(decoded.obj)
        except DecodeError as error:
            raise self._unrecognized(str(error), body) from None
        if self.custom and not kind:
            raise self._missing_kind(body, media_type, decoded.obj, validation)
        gvk = self._specified_kind(api_version, kind)
        if gvk.kind == self.kind.kind and gvk.api_version in self._also_accepts:
            gvk = self.kind
        if not gvk.version and not self.custom:
            raise self._unfit(gvk, missing_version(body.decode("utf-8", "replace")))
        try:
            self.check_kind(gvk, obj)
            unknown = self.shape(obj, gvk)
        except ShapeError as error:
            raise self._unfit_decoded(gvk, str(error) if media_type != CBOR else _json_text(error)) from None
        if validation != "Ignore" and (decoded.duplicates or unknown):
            texts = self._strict_errors(body, media_type, decoded.duplicates, unknown)
            if validation == "Strict" and texts:
                text = strict_text(texts, media_type, decoded.duplicates)
                raise self._unfit_decoded(gvk, f"strict decoding error: {text}")
            warnings.extend(texts)
        self.check_version(gvk)
        if not self.custom and (paths := raw_paths(self.kind.group, self.kind.kind)):
            for path in paths if media_type == JSON else ():
                remember(obj, path, body)
            add_go_texts(obj, paths, sent=media_type in (JSON, PROTOBUF))
        return obj

    def _parse(self, body: bytes, media_type: str) -> Decoded:
        try:
            if media_type == JSON:
                return json_serializer.decode(body, unstructured=self.custom)
            if media_type == CBOR:
                return self._decode_cbor(body)
            if media_type == PROTOBUF:
                return Decoded(protobuf.decode(body, self.kind), [])
            return yaml_serializer.decode(body)
        except NumberError as error:
            raise self._unfit(self.kind, str(error)) from None
        except protobuf.MessageError as error:
            raise self._unfit(error.kind, str(error)) from None
        except DecodeError as error:
            raise self._unrecognized(syntax_text(error) if media_type == JSON else str(error), body) from None

    def _decode_cbor(self, body: bytes) -> Decoded:
        from tetrapod.generic.endpoints import cbor_bodies

        try:
            if self.custom:
                return Decoded(cbor_bodies.decode_custom_object(body, self.kind), [])
            return cbor_bodies.decode_object(body, self.kind, self._structure_in)
        except cbor_bodies.UnfitBodyError as error:
            raise self._unfit(error.gvk, str(error)) from None

    def _structure_in(self, gvk: GroupVersionKind) -> SchemaNode | None:
        """Return the schema by which a body of the kind `gvk` is decoded, or None if the kind is not registered."""
        if gvk == self.kind or (gvk.kind == self.kind.kind and gvk.api_version in self._also_accepts):
            return self._schema()
        return structure_of(gvk) if is_registered(gvk.api_version, gvk.kind, self.kind.group) else None

    def _missing_kind(self, body: bytes, media_type: str, obj: Object | None, validation: str) -> StatusError:
        """Return the error for a custom object without a kind.

        If unknown fields are ignored, upstream's decoder is another one. It sees YAML as JSON, and its error has the
        expected kind.

        Args:
            body: the body, which the error quotes.
            obj: the decoded body; None for null.
            validation: "Ignore", "Warn" or "Strict".
        """
        text = body.decode("utf-8", "replace")
        if validation != "Ignore" or media_type == CBOR:
            return self._unrecognized(missing_kind(text), body)
        if media_type != JSON:
            text = json_serializer.go_escaped(orjson.dumps(obj, option=orjson.OPT_SORT_KEYS)).decode()
        group, version = GroupVersion.parse((obj or {}).get("apiVersion") or "")
        unset = not version and group in ("", self.kind.group)
        return self._unfit(self.kind if unset else self.kind._replace(version=version), missing_kind(text))

    def _specified_kind(self, api_version: str, kind: str) -> GroupVersionKind:
        """Return the kind that a body specifies. A built-in object may omit it; then it is the expected one.

        Args:
            api_version: the apiVersion in the body; "" if it is missing.
            kind: the kind in the body; "" if it is missing, which it is not in a custom object.
        """
        group, version = GroupVersion.parse(api_version)
        if self.custom:
            return GroupVersionKind(group, version, kind)
        if not version and group in ("", self.kind.group):
            group, version = self.kind.group, self.kind.version
        return GroupVersionKind(group, version, kind or self.kind.kind)

    def check_kind(self, gvk: GroupVersionKind, obj: Object) -> None:
        """Check that the object has the expected kind; do nothing for a custom object.

        Raises:
            ShapeError: the kind `gvk` is unknown or not the expected one. An object of another kind is decoded first,
                as upstream, so the error may be about its fields.
        """
        if gvk == self.kind or self.custom:
            return
        if not is_registered(gvk.api_version, gvk.kind, self.kind.group):
            raise ShapeError(not_registered(gvk.api_version, gvk.kind))
        if gvk.kind != self.kind.kind or not same_family(gvk.group_version, self.kind.group, gvk.kind):
            _decode_as(gvk, obj)
            raise ShapeError(unknown_conversion(gvk, self.kind.group, self.kind.kind))

    def check_version(self, gvk: GroupVersionKind) -> None:
        """Check that the kind of the object, `gvk`, is in the expected version.

        Raises:
            StatusError: 400, it is in another group or version.
        """
        if gvk.group_version != self.kind.group_version:
            expected = self.kind.api_version
            raise bad_request(
                f"the API version in the data ({gvk.api_version}) does not match the expected API version ({expected})"
            )

    def kind_errors(self, gvk: GroupVersionKind) -> list[FieldError]:
        """Return the errors of a custom object's kind and apiVersion; empty if they are the expected ones.

        Args:
            gvk: the kind and apiVersion in the body.
        """
        errors = []
        if gvk.kind != self.kind.kind:
            errors.append(invalid("kind", gvk.kind, f"must be {self.kind.kind}"))
        if gvk.group_version != self.kind.group_version:
            errors.append(invalid("apiVersion", gvk.api_version, f"must be {self.kind.api_version}"))
        return errors

    def expect_kind(self, obj: Object) -> KindMismatch | None:
        """Set the expected kind on a decoded custom object of another kind, in place, and return the errors about it.

        Return None for an object of the expected kind. Upstream finds the errors when it validates the object, after
        its name, its namespace and the state of the stored object.
        """
        if not self.custom or obj["kind"] == self.kind.kind:
            return None
        gvk = self.kind._replace(kind=obj["kind"])
        obj["kind"] = self.kind.kind
        return KindMismatch(gvk.group_kind, self.kind_errors(gvk))

    def shape(self, obj: Object, gvk: GroupVersionKind | None = None, *, keep_nulls: bool = False) -> list[str]:
        """Normalize an object in place, set defaults, and return the paths of unknown fields.

        Unknown fields are removed, unless the schema of a custom object preserves them.

        Args:
            gvk: the kind of the object; None means the expected one. Another one gets no defaults.
            keep_nulls: keep null values of a custom object for validation.

        Raises:
            ShapeError: a value has a wrong type.
        """
        gvk = gvk or self.kind
        clears_managers = not self.custom and _clears_managers(obj)  # decoding a custom object removes its empty values
        if not self.custom:
            obj["kind"], obj["apiVersion"] = gvk.kind, gvk.api_version
            unknown = self._decode_typed(obj, gvk)
        else:
            unknown = self._decode_custom(obj, gvk, keep_nulls)
        if obj.get("metadata") is None and (self.custom or "metadata" in self._schema().properties):
            obj["metadata"] = {}
        if clears_managers:
            obj["metadata"]["managedFields"] = []
        if self._default is not None and gvk == self.kind:
            self._default(obj)
        return unknown

    def _decode_typed(self, obj: Object, gvk: GroupVersionKind) -> list[str]:
        if gvk.version == INTERNAL:  # upstream decodes into its internal type, which has no JSON names
            return [name for name in obj if name not in ("apiVersion", "kind")]
        schema = self._schema() if gvk == self.kind else structure_of(gvk)
        if schema is None:
            return []
        try:
            return typed.decode(schema, obj)
        except typed.DecodeError as error:
            raise ShapeError(str(error)) from error

    def _decode_custom(self, obj: Object, gvk: GroupVersionKind, keep_nulls: bool) -> list[str]:
        try:
            if gvk == self.kind or self._schema_in is None:
                return custom_resources.decode(self._schema(), obj, keep_nulls=keep_nulls)
            if gvk.group_kind == self.kind.group_kind:
                return custom_resources.decode(self._schema_in(gvk.version), obj)
            return custom_resources.decode_unknown(obj)
        except (typed.DecodeError, CoerceError) as error:
            raise ShapeError(str(error)) from None

    def _strict_errors(
        self, body: bytes, media_type: str, duplicates: Sequence[str], unknown: Sequence[str]
    ) -> list[str]:
        if media_type == JSON and not self.custom:
            return json_serializer.strict_errors(body, unknown, self._schema())
        if media_type == CBOR:
            return list(duplicates)  # upstream finds none in custom objects
        return [*duplicates, *unknown_fields(unknown)]

    def _unrecognized(self, text: str, body: bytes) -> StatusError:
        if self._unregistered:
            return self._unfit(self.kind, text)
        return bad_request(
            f"the object provided is unrecognized (must be of type {self.kind.kind}): {text} ({summary(body)})"
        )

    def _unfit(self, gvk: GroupVersionKind, text: str) -> StatusError:
        if self._unregistered:
            return bad_request(f"no kind is registered for the type {self.kind.version}.{self.kind.kind} in {SCHEME}")
        version = go_quote(gvk.version)
        return bad_request(f"{gvk.kind} in version {version} cannot be handled as a {self.kind.kind}: {text}")

    def _unfit_decoded(self, gvk: GroupVersionKind, text: str) -> StatusError:
        """Return the error for a body that has been decoded.

        A custom object is then in the place of the one with the expected kind, which the error names.
        """
        if not self.custom:
            return self._unfit(gvk, text)
        if not gvk.version:
            return bad_request(NO_VERSION)
        return bad_request(f"{gvk.kind} in version {go_quote(gvk.version)} cannot be handled as a {gvk.kind}: {text}")


def _json_text(error: ShapeError) -> str:
    """Return the text of an error in a CBOR body, whose values were decoded by their types except for their JSON."""
    cause = error.__cause__
    return cause.alone if isinstance(cause, Mismatch) else str(error)


def _clears_managers(obj: Object) -> bool:
    """Return whether the object has an empty list of managed fields, with which a client removes all of them.

    The list has to be kept, although decoding drops empty values.
    """
    metadata = obj.get("metadata")
    return isinstance(metadata, dict) and metadata.get("managedFields") == []


def _decode_as(gvk: GroupVersionKind, obj: Object) -> None:
    schema = structure_of(gvk)
    if schema is None:
        return
    try:
        typed.decode(schema, obj)
    except typed.DecodeError as error:
        raise ShapeError(str(error)) from None


def unknown_fields(paths: Sequence[str]) -> list[str]:
    """Return a text for each path of an unknown field.

    Beyond a limit (`recorded`), one text has the number of the remaining paths.
    """
    listed, left_out = recorded(paths)
    texts = [f'unknown field "{path}"' for path in listed]
    return [*texts, more(left_out)] if left_out else texts


def strict_text(texts: Sequence[str], media_type: str, duplicates: Sequence[str]) -> str:
    """Return the texts of unknown and duplicate fields as one error text.

    Duplicate keys of YAML are introduced by a heading.

    Args:
        texts: the texts about duplicate fields, followed by those about unknown ones.
        media_type: the media type of the body.
        duplicates: the texts about duplicate fields alone, with which `texts` begins.
    """
    if media_type not in (JSON, CBOR) and duplicates:
        texts = [yaml_serializer.strict_text(list(duplicates)), *texts[len(duplicates) :]]
    return ", ".join(texts)
