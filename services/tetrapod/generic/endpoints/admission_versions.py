"""`AdmissionVersions`: converts the objects of a request to the version that a webhook or policy requests.

Upstream: admission.ObjectInterfaces; staging/src/k8s.io/apiserver/pkg/admission/conversion.go, ConvertToGVK;
staging/src/k8s.io/apimachinery/pkg/runtime/mapper.go, EquivalentResourceRegistry
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import orjson

from tetrapod.generic.admission.interface import Equivalent
from tetrapod.generic.endpoints.conversion import Conversion
from tetrapod.generic.endpoints.decoding import Decoder, ShapeError, unknown_fields
from tetrapod.generic.registry.definition import ResourceDefinition, Subresource
from tetrapod.generic.scheduling.offload import copy_of, offloaded
from tetrapod.machinery.gvk import GroupVersion, GroupVersionKind, GroupVersionResource, Object
from tetrapod.machinery.schema_node import SchemaNode
from tetrapod.machinery.status import StatusError, invalid

DecoderOf = Callable[[ResourceDefinition, str], Decoder]


class AdmissionVersions:
    """Converts the objects of one endpoint to the version that an admission plugin or webhook needs, and back.

    It implements `Versions` (admission). Objects of a subresource with a `Rest`, a handler without storage (such as of
    a Scale or an Eviction), are never converted.

    Args:
        definition: the resource.
        declared: the subresource; None for the resource itself.
        decoder: the decoder of requests to this endpoint.
        decoder_of: returns the decoder of a definition in a version.
    """

    def __init__(
        self, definition: ResourceDefinition, declared: Subresource | None, decoder: Decoder, decoder_of: DecoderOf
    ) -> None:
        self._definition, self._declared = definition, declared
        self._own_decoder, self._decoder_of = decoder, decoder_of
        self._converts = declared is None or declared.rest is None
        self._equivalents: list[Equivalent] | None = None
        self._converters: dict[GroupVersionKind, tuple[Conversion, Decoder]] = {}

    def equivalents(self) -> Sequence[Equivalent]:
        if self._equivalents is None:
            self._equivalents = list(self._all())
        return self._equivalents

    def _all(self) -> Iterator[Equivalent]:
        for definition in (self._definition, *self._definition.equivalents()):
            for version in definition.served_versions:
                resource = GroupVersionResource(definition.group, version, definition.resource)
                if self._declared is None:
                    yield Equivalent(resource, definition.gvk(version))
                    continue
                for subresource in definition.subresources_in(version):
                    if subresource.name == self._declared.name:
                        yield Equivalent(resource, subresource.kind or definition.gvk(version))

    async def convert(self, obj: Object, kind: GroupVersionKind, *, large: bool = False) -> Object:
        if not self._converts:
            return obj
        conversion, _ = self._converter(kind)
        if conversion.holds(obj):
            return obj
        return await conversion.from_stored(await copy_of(obj, large=large))

    async def accept(
        self, obj: Object, kind: GroupVersionKind, original: Object, *, strict: bool = False, large: bool = False
    ) -> Object:
        if not self._converts:
            await offloaded(large, _shape, self._own_decoder, obj, strict)
            return obj
        conversion, decoder = self._converter(kind)
        await offloaded(large, _shape, decoder, obj, strict)
        accepted = await conversion.to_stored(obj)
        for path in self._definition.missing_fields.get(kind.version, ()):
            _keep(accepted, original, path)
        return accepted

    def schema(self, kind: GroupVersionKind) -> SchemaNode | None:
        decoder = self._converter(kind)[1] if self._converts else self._own_decoder
        if not self._converts and kind.group != self._definition.group:
            # A Scale or an Eviction: upstream looks in the resource's group-version, which has no schema of it.
            return None
        try:
            return decoder.schema
        except KeyError:
            return None

    def _converter(self, kind: GroupVersionKind) -> tuple[Conversion, Decoder]:
        converter = self._converters.get(kind)
        if converter is None:
            converter = self._converters[kind] = self._find(kind)
        return converter

    def _find(self, kind: GroupVersionKind) -> tuple[Conversion, Decoder]:
        for definition in (self._definition, *self._definition.equivalents()):
            for version in definition.versions:
                if definition.gvk(version) == kind:
                    return Conversion(definition, version), self._decoder_of(definition, version)
        raise ValueError(f"unable to convert to {kind}: unknown kind")


def _keep(obj: Object, original: Object, path: tuple[str, ...]) -> None:
    """Copy a field of `original` to `obj`, in place, unless one of them lacks the object that the field belongs to."""
    *parents, name = path
    for parent in parents:
        obj, original = obj.get(parent), original.get(parent)  # type: ignore[assignment]
        if not isinstance(obj, dict) or not isinstance(original, dict):
            return
    if name in original:
        obj[name] = original[name]


def _shape(decoder: Decoder, obj: Object, strict: bool) -> None:
    """Check an object that came from a webhook or policy, remove its unknown fields and set defaults, in place.

    Args:
        decoder: the decoder of the kind that the object must have.
        obj: the object.
        strict: whether an unknown field of a built-in kind is an error.

    Raises:
        ValueError: the object is of the wrong kind, has a value of a wrong type, or (`strict`) an unknown field.
        StatusError: a custom object is of another kind (422) or group (500).
    """
    expected = decoder.kind
    if decoder.custom:
        _check_custom(decoder, obj)
    try:
        kind = GroupVersion.parse(obj.get("apiVersion") or expected.api_version).with_kind(
            obj.get("kind") or expected.kind
        )
        decoder.check_kind(kind, obj)
        unknown = decoder.shape(obj)
    except ShapeError as error:
        raise ValueError(str(error)) from None
    if strict and unknown and not decoder.custom:
        raise ValueError(f"strict decoding error: {', '.join(unknown_fields(unknown))}")


def _check_custom(decoder: Decoder, obj: Object) -> None:
    """Check that a custom object has the kind of `decoder`, and overwrite its apiVersion with the decoder's.

    An object in another version of the group is thus accepted.

    Raises:
        ValueError: it has no kind.
        StatusError: it is of another kind (422), or of another group (500).
    """
    expected, kind = decoder.kind, obj.get("kind")
    if not kind or not isinstance(kind, str):
        raise ValueError(f"Object 'Kind' is missing in '{orjson.dumps(obj, option=orjson.OPT_SORT_KEYS).decode()}'")
    actual = GroupVersion.parse(str(obj.get("apiVersion") or "")).with_kind(kind)
    if actual.group != expected.group:
        text = f'{actual} is unstructured and is not suitable for converting to "{expected.api_version}"'
        raise StatusError(500, "", text)
    if kind != expected.kind:
        raise invalid(
            actual.group_kind,
            obj["metadata"].get("name") or "",
            [e for e in decoder.kind_errors(actual) if e.field == "kind"],
        )
    obj["apiVersion"] = expected.api_version
