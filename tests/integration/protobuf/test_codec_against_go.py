"""Every built-in object of the recordings survives conversion by Go's codec and Tetrapod's, in both directions."""

from __future__ import annotations

import base64
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tetrapod.machinery import protobuf
from tetrapod.machinery.gvk import GroupVersion, GroupVersionKind, Object
from tetrapod.machinery.schema import decode as typed
from tetrapod.machinery.schema_node import SchemaNode
from tetrapod.machinery.types import schema_for

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]

RECORDINGS = Path(__file__).parents[2] / "contract" / "recordings"
MARKS = {"<time>": "2026-11-21T10:00:00Z", "<microtime>": "2026-11-21T10:00:00.123456Z"}


@pytest.fixture(scope="module")
def objects() -> list[Object]:
    found = {}
    for path in sorted(RECORDINGS.glob("*.json")):
        for step in json.loads(path.read_text())["steps"]:
            for obj in objects_in(step.get("answer", {}).get("body")):
                if (decoded := as_stored(obj)) is not None:
                    found[json.dumps(decoded, sort_keys=True)] = decoded
    assert len(found) > 1000
    return list(found.values())


def objects_in(body: Any) -> Iterator[Object]:
    if isinstance(body, list):
        for event in body:
            if isinstance(event, dict):
                yield from objects_in(event.get("object"))
    elif isinstance(body, dict):
        yield body


def kind_of(obj: Object) -> GroupVersionKind:
    group, version = GroupVersion.parse(obj["apiVersion"])
    return GroupVersionKind(group, version, obj["kind"])


def node_of(obj: Object) -> SchemaNode | None:
    try:
        return schema_for(kind_of(obj))
    except (KeyError, ValueError):
        return None


def as_stored(obj: Object) -> Object | None:
    """Return a recorded object with times in place of placeholders, or None if it is not built in or was recorded
    incompletely.
    """
    node = node_of(obj)
    if node is None:
        return None
    try:
        return normal(unmarked(obj), node)
    except typed.DecodeError:
        return None


def unmarked(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: unmarked(item) for key, item in value.items()}
    if isinstance(value, list):
        return [unmarked(item) for item in value]
    return MARKS.get(value, value) if isinstance(value, str) else value


def normal(obj: Object, node: SchemaNode) -> Object:
    """Remove information that protobuf messages do not have: empty lists, and the kind of a claim template."""
    copy: Object = json.loads(json.dumps(obj))
    typed.decode(node, copy)
    copy["items"] = copy.get("items") or None
    if copy["kind"] == "StatefulSet":
        for template in copy["spec"].get("volumeClaimTemplates", []):
            template.pop("kind", None)
            template.pop("apiVersion", None)
    return copy


def translated(goclient: Path, lines: list[str]) -> list[str]:
    run = subprocess.run(
        [goclient, "codec"], input="\n".join(lines), capture_output=True, text=True, check=True, timeout=300
    )
    answers = run.stdout.splitlines()
    assert len(answers) == len(lines)
    return answers


def test_objects_encoded_by_go_are_decoded(goclient: Path, objects: list[Object]) -> None:
    for obj, answer in zip(objects, translated(goclient, [json.dumps(obj) for obj in objects]), strict=True):
        assert not answer.startswith("!"), (answer, obj)
        node = node_of(obj)
        assert node is not None
        assert normal(protobuf.decode(base64.b64decode(answer), kind_of(obj)), node) == obj


def test_encoded_objects_are_decoded_by_go(goclient: Path, objects: list[Object]) -> None:
    lines = [base64.b64encode(protobuf.encode(obj)).decode() for obj in objects]
    for obj, answer in zip(objects, translated(goclient, lines), strict=True):
        assert not answer.startswith("!"), (answer, obj)
        node = node_of(obj)
        assert node is not None
        assert normal(json.loads(answer), node) == obj
