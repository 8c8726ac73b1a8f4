"""ConversionReview: what a conversion webhook is asked, and what it may answer: other content, the same object.

Follows createConversionReviewObjects, getConvertedObjectsFromResponse, validateConvertedObject and restoreObjectMeta of
apiextensions-apiserver/pkg/apiserver/conversion/webhook_converter.go.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any, Final

import orjson

from tetrapod.generic.webhook.question import Question, understood
from tetrapod.generic.webhook.types import expected_conversion
from tetrapod.machinery.copying import copy_object
from tetrapod.machinery.field import go_quote
from tetrapod.machinery.gvk import GroupVersion, GroupVersionKind, Object
from tetrapod.machinery.labels import validate_labels
from tetrapod.machinery.metadata import validate_annotations
from tetrapod.machinery.patch.goformat import json_kind
from tetrapod.machinery.serializer.json import ordered

_NULL: Final = "unexpected end of JSON input"


class BadConversion(Exception):
    """An answer that is none; `told` is the whole text where upstream says nothing of the webhook."""

    def __init__(self, text: str, *, told: bool = False) -> None:
        super().__init__(text)
        self.told = told


def question(objects: Sequence[Object], api_version: str, versions: Sequence[str]) -> Question:
    """
    Raises:
        BadConversion: the webhook understands no version of reviews that we do.
    """
    version = understood(versions)
    if version is None:
        raise BadConversion("no supported conversion review versions", told=True)
    uid = str(uuid.uuid4())
    request = {"uid": uid, "desiredAPIVersion": api_version, "objects": [_as_stored(obj) for obj in objects]}
    nothing: Object = {"uid": "", "convertedObjects": None, "result": {"metadata": {}}}  # upstream sends it along
    review = {"kind": "ConversionReview", "apiVersion": f"apiextensions.k8s.io/{version}", "request": request, "response": nothing}
    return Question(uid, version, orjson.dumps(review), expected_conversion(version))


def _as_stored(obj: Object) -> Object:
    """Without a resourceVersion, which no stored object has in itself."""
    metadata = {key: value for key, value in obj["metadata"].items() if key != "resourceVersion"}
    return ordered({**obj, "metadata": metadata})


def converted_objects(asked: Question, review: Object) -> list[Any]:
    """What came back, unseen.

    Raises:
        BadConversion
    """
    response = review.get("response")
    if asked.version == "v1":
        wanted = GroupVersionKind("apiextensions.k8s.io", "v1", "ConversionReview")
        given = GroupVersion.parse(review.get("apiVersion") or "").with_kind(review.get("kind") or "")
        if given != wanted:
            raise BadConversion(f"expected webhook response of {wanted}, got {given}")
    if response is None:
        raise BadConversion("no response provided")
    if asked.version == "v1" and (uid := response.get("uid") or "") != asked.uid:
        raise BadConversion(f"expected response.uid={go_quote(asked.uid)}, got {go_quote(uid)}")
    result = response.get("result") or {}
    status = result.get("status") or ""
    if status != "Success":
        raise BadConversion(result.get("message") or f"response.result.status was '{status}', not 'Success'")
    found: list[Any] = response.get("convertedObjects") or []
    return found


def checked(original: Object, converted: Any, wanted: GroupVersion, at: str) -> Object:
    """The converted object with the original's metadata, but its own labels and annotations. `at` is "", or which of several it is.

    Raises:
        BadConversion
    """
    obj = _object(converted)
    place = f"converted object at index {at}" if at else "object at index 0"
    api_version = obj.get("apiVersion")
    given = GroupVersion.parse(api_version if isinstance(api_version, str) else "")
    if given != wanted:
        raise BadConversion(f"returned invalid {place}: invalid groupVersion (expected {wanted}, received {given})")
    if obj["kind"] != original["kind"]:
        raise BadConversion(f"returned invalid {place}: invalid kind (expected {original['kind']}, received {obj['kind']})")
    _check_same(original, obj, place if at else "object")
    problem = _restore_metadata(original, obj)
    if problem:
        raise BadConversion(f"returned invalid metadata{f' in object at index {at}' if at else ''}: {problem}")
    return obj


def _object(converted: Any) -> Object:
    if converted is None:
        raise BadConversion(_NULL, told=True)
    if not isinstance(converted, dict):
        raise BadConversion(f"json: cannot unmarshal {json_kind(converted)} into Go value of type map[string]interface {{}}", told=True)
    if not isinstance(converted.get("kind"), str) or not converted["kind"] or not _is_version(converted.get("apiVersion")):
        raise BadConversion(f"Object 'Kind' is missing in '{orjson.dumps(converted).decode()}'", told=True)
    return converted


def _is_version(given: Any) -> bool:
    """What is none leaves upstream without a kind, too; only what is no text counts as nothing."""
    try:
        GroupVersion.parse(given if isinstance(given, str) else "")
    except ValueError:
        return False
    return True


def _check_same(original: Object, obj: Object, place: str) -> None:
    before, after = original["metadata"], obj.get("metadata")
    for name, shown in (("name", "name"), ("namespace", "namespace"), ("uid", "UID")):
        wanted = before.get(name) or ""
        given = after.get(name) if isinstance(after, dict) else ""
        if not isinstance(given, str):
            given = ""
        if given != wanted:
            raise BadConversion(f"returned invalid {place}: must have the same {shown}: {wanted} != {given}")


def _restore_metadata(original: Object, obj: Object) -> str:
    """What is wrong with the new metadata; else it is put together."""
    if "metadata" not in obj:
        return "missing metadata in converted object"
    given = obj["metadata"]
    if not isinstance(given, dict):
        return f"invalid metadata of type {_go_type(given)} in converted object"
    kept = copy_object(original)["metadata"]
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


def _pairs_problem(name: str, value: Object, before: Object) -> str:
    for key, item in value.items():
        if not isinstance(item, str):
            return f"metadata.{name}[{key}] must be a string, but is {_go_type(item)} in converted object"
    if value == before:
        return ""
    errors = validate_labels(value, "metadata.labels") if name == "labels" else validate_annotations(value, "metadata.annotation")
    texts = [str(error) for error in errors]
    return "" if not texts else texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"


def _go_type(value: Any) -> str:
    if value is None:
        return "<nil>"
    kinds = {bool: "bool", int: "int64", float: "float64", str: "string", list: "[]interface {}", dict: "map[string]interface {}"}
    return kinds[type(value)]
