"""Invalid and unusual objects of every built-in kind: created, and as changes of a stored object."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from differential.corpus import Example, examples
from differential.mutations import Mutation, sample
from differential.paths import REMOVED, nested, pointer
from differential.report import Report
from differential.requests import TABLE, Step, with_query
from differential.scenes import Scene, scene
from differential.schemas import Schemas
from differential.servers import Pair

NAME: Final = "objects"
_APPLY_QUERIES: Final = ("&fieldManager=a", "&fieldManager=a&force=true", "&fieldManager=golden")


def run(pair: Pair, schemas: Schemas, report: Report, seed: int, count: int, only: str) -> None:
    """Create each example with mutations, then store it and change it with mutations."""
    with scene(pair, {"name": "differential-objects"}) as at:
        for number, example in enumerate(examples(schemas, only)):
            rng = random.Random(f"{seed} {example.collection} {number}")
            for variant in _some_as_tables(_creations(example, schemas, rng, count), rng):
                report.add(NAME, at.ask(variant))
            report.add(NAME, at.perform({"request": f"POST {example.collection}", "body": example.body}))
            for variant in _some_as_tables(_changes(at, example, schemas, rng, count), rng):
                report.add(NAME, at.ask(variant))
            at.remove(example.path)


def _some_as_tables(steps: Iterable[Step], rng: random.Random) -> Iterator[Step]:
    for step in steps:
        yield step | {"headers": TABLE} if rng.random() < 0.2 else step


def _creations(example: Example, schemas: Schemas, rng: random.Random, count: int) -> Iterator[Step]:
    request = with_query(f"POST {example.collection}", "dryRun=All")
    for mutation in sample(example.body, schemas, schemas.of(example.body), rng, count):
        yield {"request": request, "body": mutation.apply(example.body), "about": str(mutation)}
    strict = with_query(request, "fieldValidation=Strict")
    for mutation in sample(example.body, schemas, schemas.of(example.body), rng, count // 8):
        yield {"request": strict, "body": mutation.apply(example.body), "about": str(mutation)}


def _changes(at: Scene, example: Example, schemas: Schemas, rng: random.Random, count: int) -> Iterator[Step]:
    schema = schemas.of(example.body)
    stored = at.stored(example.path)
    if stored is None:
        return
    for mutation in sample(stored, schemas, schema, rng, count):
        body = mutation.apply(stored)
        yield {"request": f"PUT {example.path}?dryRun=All", "body": body, "about": str(mutation)}
        if mutation.path[:1] != ("status",):
            form = rng.choice(_PATCHES)
            patch = form(mutation, example.body)
            if patch is not None:
                query = rng.choice(_APPLY_QUERIES) if form is _apply else ""
                yield {"request": f"PATCH {example.path}?dryRun=All{query}", "about": str(mutation)} | patch
    if "status" in schema.get("properties", {}):
        for _ in range(count // 2):
            status = schemas.example(schemas.at(schema, ("status",)), rng, depth=4)
            body = {"status": status}
            yield {"request": f"PATCH {example.path}/status?dryRun=All", "patch": "merge", "body": body}
            for mutation in sample(status, schemas, schemas.at(schema, ("status",)), rng, 2):
                body = stored | {"status": mutation.apply(status)}
                yield {"request": f"PUT {example.path}/status?dryRun=All", "body": body, "about": str(mutation)}


def _merge(mutation: Mutation, _body: dict[str, Any]) -> Step | None:
    if any(isinstance(part, int) for part in mutation.path):
        return None
    return {"patch": "merge", "body": nested(mutation.path, None if mutation.new is REMOVED else mutation.new)}


def _strategic(mutation: Mutation, body: dict[str, Any]) -> Step | None:
    merge = _merge(mutation, body)
    return None if merge is None else merge | {"patch": "strategic"}


def _json(mutation: Mutation, _body: dict[str, Any]) -> Step:
    operation = {"op": "remove" if mutation.new is REMOVED else "add", "path": pointer(mutation.path)}
    if mutation.new is not REMOVED:
        operation["value"] = mutation.new
        operation["op"] = "replace" if isinstance(mutation.path[-1], int) else "add"
    return {"patch": "json", "body": [operation]}


def _apply(mutation: Mutation, body: dict[str, Any]) -> Step | None:
    try:
        return {"patch": "apply", "body": mutation.apply(body)}
    except (KeyError, IndexError, TypeError):  # the place exists in the stored object only
        return None


_PATCHES: Final[tuple[Callable[[Mutation, dict[str, Any]], Step | None], ...]] = (_merge, _strategic, _json, _apply)
