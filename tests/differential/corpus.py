"""Valid objects of every kind: those of `objects/`, and those of the recordings that kube-apiserver accepted."""

from __future__ import annotations

import json
import re
import urllib.parse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from contract.replaying import RECORDINGS
from differential.schemas import Schemas

_SAVED: Final = re.compile(r"\{(?!ns\})\w+\}")
_PER_RESOURCE: Final = 8
"""Examples of a resource from recordings."""
_OBJECTS: Final = sorted((Path(__file__).parent / "objects").glob("*.yaml"))


@dataclass(frozen=True, slots=True)
class Example:
    """A valid object and the path of its collection, in which `{ns}` is the namespace."""

    collection: str
    body: dict[str, Any]

    @property
    def name(self) -> str:
        return str(self.body["metadata"]["name"])

    @property
    def path(self) -> str:
        return f"{self.collection}/{urllib.parse.quote(self.name, safe='{}:')}"  # names of roles have any characters


def examples(schemas: Schemas, only: str = "") -> list[Example]:
    """Return examples of the built-in kinds whose collection or name matches an expression."""
    found: dict[str, dict[str, Example]] = {}
    for path in RECORDINGS:
        for step in json.loads(path.read_text())["steps"]:
            example = _example(step, schemas)
            if example is not None and re.search(only, example.path):
                known = found.setdefault(example.collection, {})
                known.setdefault(json.dumps(example.body, sort_keys=True), example)
    bodies = [body for path in _OBJECTS for body in yaml.safe_load_all(path.read_text()) if body]
    chosen = [Example(schemas.collection(body), body) for body in bodies]
    chosen = [example for example in chosen if example.collection and re.search(only, example.path)]
    for collection in sorted(found):
        by_size = sorted(found[collection].items(), key=lambda item: -len(item[0]))
        chosen += [example for _, example in _spread(by_size, _PER_RESOURCE)]
    return chosen


def _spread(items: list[tuple[str, Example]], count: int) -> Sequence[tuple[str, Example]]:
    """Return the largest items, and others of all sizes."""
    largest, others = items[: count // 2], items[count // 2 :]
    return largest + others[:: max(1, len(others) // (count - count // 2))][: count - count // 2]


def _example(step: dict[str, Any], schemas: Schemas) -> Example | None:
    method, target = step["request"].split(" ", 1)
    body = step.get("body")
    if method != "POST" or step["answer"].get("status") != 201 or "as" in step or not isinstance(body, dict):
        return None
    metadata = body.get("metadata")
    if not schemas.of(body) or not isinstance(metadata, dict) or not isinstance(metadata.get("name"), str):
        return None
    if _SAVED.search(json.dumps(body)) or _SAVED.search(target):
        return None
    collection = target.partition("?")[0]
    if schemas.collection(body) != collection:  # another namespace, or a subresource
        return None
    return Example(collection, body)
