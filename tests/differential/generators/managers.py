"""Several managers that apply, update and patch one object, and the managed fields that result."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any, Final

from differential.corpus import Example, examples
from differential.mutations import sample
from differential.paths import nodes, replaced
from differential.report import Report
from differential.requests import Step
from differential.scenes import Scene, scene
from differential.schemas import Schemas
from differential.servers import Pair

NAME: Final = "managers"
_KEYS: Final = frozenset({"apiVersion", "kind", "metadata", "name"})
"""Members that an apply configuration needs, or that identify elements of lists."""


def run(pair: Pair, schemas: Schemas, report: Report, seed: int, count: int, only: str) -> None:
    """Store parts of each example by `count` times three writes of several managers."""
    with scene(pair, {"name": "differential-managers"}) as at:
        for number, example in enumerate(examples(schemas, only)):
            rng = random.Random(f"{seed} managers {example.collection} {number}")
            report.add(NAME, at.perform(_apply(example, example.body, "a", force=False)))
            for _ in range(3 * count):
                report.add(NAME, at.perform(_write(at, example, schemas, rng)))
            at.remove(example.path)


def _write(at: Scene, example: Example, schemas: Schemas, rng: random.Random) -> Step:
    manager = rng.choice("abc")
    part = _part(example.body, rng)
    if rng.random() < 0.3:
        part = sample(part, schemas, schemas.of(part), rng, 1)[0].apply(part)
    if rng.random() < 0.6:
        return _apply(example, part, manager, force=rng.random() < 0.4)
    form = rng.choice(("merge", "strategic"))
    stored: Mapping[str, Any] = at.stored(example.path) or example.body
    if rng.random() < 0.4:
        body = sample(dict(stored), schemas, schemas.of(stored), rng, 1)[0].apply(stored)
        return {"request": f"PUT {example.path}?fieldManager={manager}", "body": body}
    return {"request": f"PATCH {example.path}?fieldManager={manager}", "patch": form, "body": part}


def _apply(example: Example, body: dict[str, Any], manager: str, *, force: bool) -> Step:
    query = f"fieldManager={manager}{'&force=true' if force else ''}"
    return {"request": f"PATCH {example.path}?{query}", "patch": "apply", "body": body}


def _part(body: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    """Return an object without some of its members."""
    for _ in range(rng.choice((1, 2, 3, 5))):
        paths = [path for path, _ in nodes(body) if path and path[-1] not in _KEYS and isinstance(path[-1], str)]
        if paths:
            path = rng.choice(paths)
            body = replaced(body, path[:-1], {k: v for k, v in _at(body, path[:-1]).items() if k != path[-1]})
    return body


def _at(value: Any, path: tuple[str | int, ...]) -> Any:
    for part in path:
        value = value[part]
    return value
