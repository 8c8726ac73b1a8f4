"""Strategic merge patches with directives, and JSON patches of every operation, at every place of a stored object."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any, Final

from differential.corpus import Example, examples
from differential.paths import Path, nodes, pointer
from differential.report import Report
from differential.requests import Step
from differential.scenes import Scene, scene
from differential.schemas import Schema, Schemas
from differential.servers import Pair

NAME: Final = "directives"
_MERGE_KEY: Final = "x-kubernetes-patch-merge-key"
_PATCHES: Final = ("replace", "delete", "merge", "bogus", 1)
_POINTERS: Final = ("/-", "/0", "/1", "/9", "/-1", "/01", "/x", "/", "/~", "/~1x", "")


def run(pair: Pair, schemas: Schemas, report: Report, seed: int, count: int, only: str) -> None:
    """Store each example, and patch it as dry runs in `count` times five ways of each form."""
    with scene(pair, {"name": "differential-directives"}) as at:
        for number, example in enumerate(examples(schemas, only)):
            rng = random.Random(f"{seed} directives {example.collection} {number}")
            report.add(NAME, at.perform({"request": f"POST {example.collection}", "body": example.body}))
            for step in _steps(at, example, schemas, rng, 5 * count):
                report.add(NAME, at.ask(step))
            at.remove(example.path)


def _steps(at: Scene, example: Example, schemas: Schemas, rng: random.Random, count: int) -> Iterator[Step]:
    stored = at.stored(example.path)
    if stored is None:
        return
    request = f"PATCH {example.path}?dryRun=All"
    schema = schemas.of(stored)
    for _ in range(count):
        yield {"request": request, "patch": "strategic", "body": _strategic(stored, schemas, schema, rng)}
        yield {"request": request, "patch": "json", "body": _operations(stored, rng)}


def _strategic(stored: dict[str, Any], schemas: Schemas, schema: Schema, rng: random.Random) -> Any:
    """Return a patch with directives at one map or list, or with one at each of two."""
    places = [path for path, node in nodes(stored) if isinstance(node, (dict, list))]
    path = rng.choice(places)
    node = _at(stored, path)
    if isinstance(node, dict):
        return _wrapped(stored, schemas, schema, path, _of_map(node, schemas, schemas.at(schema, path), rng))
    *parents, name = path
    body = _of_list(str(name), node, schemas.at(schema, path), rng)
    return _wrapped(stored, schemas, schema, tuple(parents), body)


def _wrapped(stored: Any, schemas: Schemas, schema: Schema, path: Path, body: Any) -> Any:
    """Return the patch that has a body at a path, whose elements of lists are named by their merge keys."""
    for end in range(len(path) - 1, -1, -1):
        part = path[end]
        if isinstance(part, int):
            key = schemas.at(schema, path[:end]).get(_MERGE_KEY)
            element = _at(stored, path[: end + 1])
            body = [{**body, key: element[key]}] if key in element and isinstance(body, dict) else [body]
        else:
            body = {part: body}
    return body


def _of_map(node: dict[str, Any], schemas: Schemas, schema: Schema, rng: random.Random) -> Any:
    part = {key: node[key] for key in rng.sample(sorted(node), min(len(node), rng.choice((0, 1, 2))))}
    if rng.random() < 0.3:
        part = {key: rng.choice((None, value)) for key, value in part.items()}
    unset = [key for key in schema.get("properties", {}) if key not in node and key not in ("apiVersion", "kind")]
    if unset and rng.random() < 0.5:
        key = rng.choice(unset)
        part[key] = schemas.example(schemas.at(schema, (key,)), rng)
    kept: Any = rng.sample([*node, *unset[:3]], rng.randint(0, min(3, len(node))))
    kept = rng.choice((kept, [*part], [*part, *kept], [*part, "unknown"], "x", [1], None, {}))
    if rng.random() < 0.5:
        return {"$patch": rng.choice(_PATCHES), **part}
    return {"$retainKeys": kept, **part}


def _of_list(name: str, node: list[Any], schema: Schema, rng: random.Random) -> dict[str, Any]:
    key = schema.get(_MERGE_KEY, "name")
    if not node or not isinstance(node[0], dict):
        return _of_primitives(name, node, rng)
    elements = [dict(element) for element in rng.sample(node, rng.randint(0, min(2, len(node))))]
    for element in elements:
        choice = rng.random()
        if choice < 0.3:
            element["$patch"] = rng.choice(_PATCHES)
        elif choice < 0.5:
            element.pop(key, None)
        elif choice < 0.7:
            element[key] = rng.choice((f"{element.get(key)}x", 1, None, {}, 8081))
        elif choice < 0.8:
            element.clear()
    if rng.random() < 0.4:
        elements.insert(rng.randint(0, len(elements)), {"$patch": rng.choice(_PATCHES)})
    if rng.random() < 0.2:
        elements.append({"$patch": "delete", key: rng.choice((node[0].get(key), "unknown"))})
    order: list[Any] = [{key: one.get(key)} for one in rng.sample(node, rng.randint(0, len(node)))]
    order += [{key: one.get(key)} for one in elements if rng.random() < 0.6 and one.get(key) is not None]
    order += rng.choice(([], [], [{key: "unknown"}], ["x"], [{}], [1], [{"other": "x"}]))
    body: dict[str, Any] = {name: elements} if elements or rng.random() < 0.5 else {}
    if rng.random() < 0.6:
        body[f"$setElementOrder/{name}"] = rng.choice((order, order, order, order[::-1], "x", None, {}))
    if rng.random() < 0.1:
        body[f"$deleteFromPrimitiveList/{name}"] = rng.choice((["x"], elements, "x", None))
    return body


def _of_primitives(name: str, node: list[Any], rng: random.Random) -> dict[str, Any]:
    some = rng.sample(node, rng.randint(0, min(2, len(node))))
    body: dict[str, Any] = {}
    if rng.random() < 0.6:
        others = ([*some, "new"], ["new", *some, *some], [{"$patch": "replace"}, *some], [1], None)
        body[name] = rng.choice((some, *others))
    if rng.random() < 0.6:
        body[f"$deleteFromPrimitiveList/{name}"] = rng.choice((some, node, ["unknown"], [1], [{}], "x", None, []))
    if rng.random() < 0.5:
        order = [*rng.sample(node, rng.randint(0, len(node))), *rng.choice(([], ["new"], ["unknown"], [1], [{}]))]
        body[f"$setElementOrder/{name}"] = rng.choice((order, order, [*some, "new"], "x", None))
    return body


def _operations(stored: dict[str, Any], rng: random.Random) -> Any:
    """Return one to three operations of a JSON patch, valid and invalid ones."""
    places = [(path, node) for path, node in nodes(stored) if path]
    operations: list[Any] = []
    for _ in range(rng.choice((1, 1, 2, 3))):
        path, node = rng.choice(places)
        source, other = rng.choice(places)
        name = rng.choice(("add", "replace", "remove", "test", "copy", "move", "test", "copy", "move", "Add", "bogus"))
        target = pointer(path) if rng.random() < 0.6 else pointer(path[:-1]) + rng.choice(_POINTERS)
        operation: dict[str, Any] = {"op": name, "path": target}
        if name in ("add", "replace", "test") or rng.random() < 0.05:
            operation["value"] = rng.choice((node, node, other, None, "x", 1, {}, []))
        if name in ("copy", "move"):
            operation["from"] = pointer(source) if rng.random() < 0.8 else pointer(source) + rng.choice(_POINTERS)
        if rng.random() < 0.06:
            operation.pop(rng.choice(sorted(operation)))
        if rng.random() < 0.04:
            operation[rng.choice(("op", "path", "from"))] = rng.choice((None, 1, "", "x", [], {}))
        operations.append(operation)
    return operations if rng.random() < 0.97 else rng.choice((operations[0], [], [[]], [None], "x"))


def _at(value: Any, path: Path) -> Any:
    for part in path:
        value = value[part]
    return value
