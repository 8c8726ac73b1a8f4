"""ConversionReview: encoding of the request and validation of the response.

A webhook may change the content of an object, but not its identity.

Upstream: apiextensions-apiserver/pkg/apiserver/conversion/webhook_converter.go, createConversionReviewObjects,
getConvertedObjectsFromResponse, validateConvertedObject and restoreObjectMeta.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any, Final

import orjson

from tetrapod.generic.webhook.responses import Review, supported_version
from tetrapod.generic.webhook.review_schemas import expected_conversion
from tetrapod.machinery.copying import copy_object
from tetrapod.machinery.error_aggregate import aggregate_errors
from tetrapod.machinery.golang.formatting import json_kind
from tetrapod.machinery.golang.quoting import go_quote
from tetrapod.machinery.gvk import GroupVersion, GroupVersionKind, Object
from tetrapod.machinery.json_pieces import dumps
from tetrapod.machinery.labels import validate_labels
from tetrapod.machinery.metadata import validate_annotations
from tetrapod.machinery.serializer.json import ordered

_NULL: Final = "unexpected end of JSON input"


class BadConversion(Exception):
    """The error that the webhook cannot be called as declared, or that its response is invalid.

    Attributes:
        complete: whether the text is the whole error message. Otherwise the caller puts the name of the webhook before
            it, as upstream does.
    """

    def __init__(self, text: str, *, complete: bool = False) -> None:
        super().__init__(text)
        self.complete = complete


def new_review(objects: Sequence[Object], api_version: str, versions: Sequence[str], large: bool = False) -> Review:
    """Return the review to send to the webhook, with a new uid.

    Args:
        objects: the objects to convert.
        api_version: the apiVersion to convert to.
        versions: the review versions that the webhook accepts, in order of preference.
        large: whether to encode the review in steps between which other threads can run.

    Raises:
        BadConversion: the webhook accepts no review version that this server supports.
    """
    version = supported_version(versions)
    if version is None:
        raise BadConversion("no supported conversion review versions", complete=True)
    uid = str(uuid.uuid4())
    request = {"uid": uid, "desiredAPIVersion": api_version, "objects": [_as_stored(obj) for obj in objects]}
    # upstream sends the empty response as well
    empty_response: Object = {"uid": "", "convertedObjects": None, "result": {"metadata": {}}}
    review = {
        "kind": "ConversionReview",
        "apiVersion": f"apiextensions.k8s.io/{version}",
        "request": request,
        "response": empty_response,
    }
    return Review(uid, version, dumps(review) if large else orjson.dumps(review), expected_conversion(version))


def _as_stored(obj: Object) -> Object:
    """Return a copy without metadata.resourceVersion, which stored objects do not have; nested objects are shared."""
    metadata = {key: value for key, value in obj["metadata"].items() if key != "resourceVersion"}
    return ordered({**obj, "metadata": metadata})


def converted_objects(sent: Review, review: Object) -> list[Any]:
    """Return the objects in a webhook's response, without validating each of them (see `checked`).

    Args:
        sent: the review that was sent, with its uid and version.
        review: the webhook's response.

    Raises:
        BadConversion: the response is malformed, or the webhook reports a failure.
    """
    response = review.get("response")
    if sent.version == "v1":
        expected = GroupVersionKind("apiextensions.k8s.io", "v1", "ConversionReview")
        given = GroupVersion.parse(review.get("apiVersion") or "").with_kind(review.get("kind") or "")
        if given != expected:
            raise BadConversion(f"expected webhook response of {expected}, got {given}")
    if response is None:
        raise BadConversion("no response provided")
    if sent.version == "v1" and (uid := response.get("uid") or "") != sent.uid:
        raise BadConversion(f"expected response.uid={go_quote(sent.uid)}, got {go_quote(uid)}")
    result = response.get("result") or {}
    status = result.get("status") or ""
    if status != "Success":
        raise BadConversion(result.get("message") or f"response.result.status was '{status}', not 'Success'")
    objects: list[Any] = response.get("convertedObjects") or []
    return objects


def checked(original: Object, converted: Any, expected: GroupVersion, at: str) -> Object:
    """Return the converted object with the metadata of the original, except for its labels and annotations.

    `converted` is changed in place and returned.

    Args:
        original: the object that was sent.
        converted: the object in the response.
        expected: the requested version.
        at: the index of the object if there are several, otherwise "".

    Raises:
        BadConversion: the object is malformed, or the webhook changed something that it must not change.
    """
    obj = _object(converted)
    description = f"converted object at index {at}" if at else "object at index 0"
    api_version = obj.get("apiVersion")
    given = GroupVersion.parse(api_version if isinstance(api_version, str) else "")
    if given != expected:
        raise BadConversion(
            f"returned invalid {description}: invalid groupVersion (expected {expected}, received {given})"
        )
    if obj["kind"] != original["kind"]:
        raise BadConversion(
            f"returned invalid {description}: invalid kind (expected {original['kind']}, received {obj['kind']})"
        )
    _check_same(original, obj, description if at else "object")
    error_text = _restore_metadata(original, obj)
    if error_text:
        raise BadConversion(f"returned invalid metadata{f' in object at index {at}' if at else ''}: {error_text}")
    return obj


def _object(converted: Any) -> Object:
    if converted is None:
        raise BadConversion(_NULL, complete=True)
    if not isinstance(converted, dict):
        raise BadConversion(
            f"json: cannot unmarshal {json_kind(converted)} into Go value of type map[string]interface {{}}",
            complete=True,
        )
    if (
        not isinstance(converted.get("kind"), str)
        or not converted["kind"]
        or not _is_version(converted.get("apiVersion"))
    ):
        raise BadConversion(f"Object 'Kind' is missing in '{orjson.dumps(converted).decode()}'", complete=True)
    return converted


def _is_version(given: Any) -> bool:
    """Return whether the value is a valid apiVersion. As upstream, any value that is not a string is valid."""
    try:
        GroupVersion.parse(given if isinstance(given, str) else "")
    except ValueError:
        return False
    return True


def _check_same(original: Object, obj: Object, place: str) -> None:
    original_metadata, metadata = original["metadata"], obj.get("metadata")
    for name, shown in (("name", "name"), ("namespace", "namespace"), ("uid", "UID")):
        expected = original_metadata.get(name) or ""
        given = metadata.get(name) if isinstance(metadata, dict) else ""
        if not isinstance(given, str):
            given = ""
        if given != expected:
            raise BadConversion(f"returned invalid {place}: must have the same {shown}: {expected} != {given}")


def _restore_metadata(original: Object, obj: Object) -> str:
    """Replace the metadata of `obj` by that of the original, with the labels and annotations of `obj`, in place.

    Returns:
        "", or an error text if the metadata of `obj` is malformed; `obj` is then unchanged.
    """
    if "metadata" not in obj:
        return "missing metadata in converted object"
    given = obj["metadata"]
    if not isinstance(given, dict):
        return f"invalid metadata of type {_go_type(given)} in converted object"
    kept = copy_object(original["metadata"])
    for name in ("labels", "annotations"):
        value = given.get(name)
        if value is None:
            kept.pop(name, None)
            continue
        if not isinstance(value, dict):
            return f"invalid metadata.{name} of type {_go_type(value)} in converted object"
        if problem := _pairs_problem(name, value, kept.get(name) or {}):
            return problem
        kept[name] = value
    obj["metadata"] = kept
    return ""


def _pairs_problem(name: str, value: Object, original: Object) -> str:
    for key, item in value.items():
        if not isinstance(item, str):
            return f"metadata.{name}[{key}] must be a string, but is {_go_type(item)} in converted object"
    if value == original:
        return ""
    errors = (
        validate_labels(value, "metadata.labels")
        if name == "labels"
        else validate_annotations(value, "metadata.annotation")
    )
    return aggregate_errors(errors)


def _go_type(value: Any) -> str:
    if value is None:
        return "<nil>"
    kinds = {
        bool: "bool",
        int: "int64",
        float: "float64",
        str: "string",
        list: "[]interface {}",
        dict: "map[string]interface {}",
    }
    return kinds[type(value)]
