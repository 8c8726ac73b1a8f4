"""Mutations: changes of one place of a value, chosen by its type and its schema."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from differential.expressions import EXPRESSIONS, FIELDS
from differential.paths import REMOVED, Path, nodes, replaced, text
from differential.schemas import Schema, Schemas

_INTEGERS: Final = (
    *(-1, 0, 1, 2, 7, 100, 32768, 65535, 65536, 2147483647, 2147483648, -2147483649),
    *(9223372036854775807, 9223372036854775808, 1.5, 1.0, 1e20, "1", True),
)
_STRINGS: Final = (
    *(
        "",
        " ",
        "x",
        "X",
        "a b",
        "a_b",
        "-a",
        "a-",
        "a.b",
        "a..b",
        "a/b",
        "a/b/c",
        "/a",
        "../a",
        "*",
        "é",
        "a\nb",
        "Bogus",
    ),
    *(
        "0",
        "-1",
        "1",
        "1.5",
        "1e3",
        "1Gi",
        "1Ki3",
        "101%",
        "50%",
        "-5%",
        "true",
        "1h",
        "10.0.0.300",
        "010.0.0.1",
        "::1",
    ),
    *(
        "fd00::1",
        "10.0.0.0/8",
        "10.1.0.0/8",
        "https://example.com",
        "example.com/x",
        "2026-01-02T03:04:05Z",
        "{}",
        "$(A)",
    ),
    *("kubernetes.io/x", "a" * 63, "a" * 64, "a" * 253, "a" * 254, "a" * 300, 1, True),
)
_ODD_KEYS: Final = ("unknownField", "", "a b", "example.com/x", "-a", "a" * 64, "kubernetes.io/x", "A_b")
_COMMON: Final = frozenset({"apiVersion", "kind"})


@dataclass(frozen=True, slots=True)
class Mutation:
    """A change of one place.

    Attributes:
        new: the value there, or REMOVED.
    """

    path: Path
    new: Any

    def __str__(self) -> str:
        new = "removed" if self.new is REMOVED else json.dumps(self.new)
        return f"{text(self.path)}: {new[:200]}"

    def apply(self, value: Any) -> Any:
        return replaced(value, self.path, self.new)


def sample(value: Any, schemas: Schemas, schema: Schema, rng: random.Random, count: int) -> list[Mutation]:
    """Return up to `count` different mutations of a value. Each place of the value is as likely as the others."""
    places = [(path, node) for path, node in nodes(value) if path and path[0] not in _COMMON] or [((), value)]
    chosen: dict[str, Mutation] = {}
    for _ in range(count * 2):
        path, node = rng.choice(places)
        options = list(_options(path, node, schemas, schemas.at(schema, path), rng))
        mutation = rng.choice(options)
        chosen.setdefault(repr(mutation), mutation)
        if len(chosen) == count:
            break
    return list(chosen.values())


def every(value: Any, schemas: Schemas, schema: Schema, rng: random.Random) -> Iterator[Mutation]:
    """Yield all mutations of all places of a value."""
    for path, node in nodes(value):
        if path and path[0] not in _COMMON:
            yield from _options(path, node, schemas, schemas.at(schema, path), rng)


def _options(path: Path, node: Any, schemas: Schemas, schema: Schema, rng: random.Random) -> Iterator[Mutation]:
    if path:
        yield Mutation(path, REMOVED)
        yield Mutation(path, None)
    if isinstance(node, dict):
        yield from _of_map(path, node, schemas, schema, rng)
    elif isinstance(node, list):
        yield from _of_list(path, node, schemas, schema, rng)
    else:
        yield from _of_scalar(path, node, schema)
    if not isinstance(node, (dict, list)):
        yield Mutation(path, rng.choice(([], {}, ["x"], {"a": "b"})))


def _of_map(
    path: Path, node: dict[str, Any], schemas: Schemas, schema: Schema, rng: random.Random
) -> Iterator[Mutation]:
    others: tuple[Any, ...] = ({}, [], "x", 1)
    yield from (Mutation(path, other) for other in others)
    absent = [name for name in schema.get("properties", {}) if name not in node and name not in _COMMON]
    for name in absent:
        yield Mutation((*path, name), schemas.example(schemas.at(schema, (name,)), rng))
        if rng.random() < 0.3:
            yield Mutation((*path, name), schemas.example(schemas.at(schema, (name,)), rng, depth=1))
    inner = schema.get("additionalProperties") or {}
    for key in (rng.choice(_ODD_KEYS), rng.choice(_ODD_KEYS)):
        yield Mutation((*path, key), schemas.example(inner, rng) if inner else 1)


def _of_list(path: Path, node: list[Any], schemas: Schemas, schema: Schema, rng: random.Random) -> Iterator[Mutation]:
    others: tuple[Any, ...] = ([], {}, "x", [None], [*node, None])
    yield from (Mutation(path, other) for other in others)
    if node:
        yield Mutation(path, [*node, node[0]])
        yield Mutation(path, [*node, node[-1], node[-1]])
        yield Mutation(path, node[::-1])
        yield Mutation(path, node[1:])
    yield Mutation(path, [*node, {} if "$ref" in schema.get("items", {}) else ""])
    yield Mutation(path, [*node, schemas.example(schema.get("items", {}), rng)])


def _of_scalar(path: Path, node: Any, schema: Schema) -> Iterator[Mutation]:
    yield from (Mutation(path, other) for other in _scalars(path, node, schema))


def _scalars(path: Path, node: Any, schema: Schema) -> Iterator[Any]:
    yield from (other for other in schema.get("enum", []) if other != node)
    if isinstance(node, bool):
        yield from (not node, "true", 1)
    elif isinstance(node, (int, float)):
        yield from (*_INTEGERS, node + 1, -node)
    elif isinstance(node, str):
        if path and path[-1] in FIELDS:
            yield from EXPRESSIONS
        yield from (*_STRINGS, node.upper(), node + "x", f" {node}", f"{node}.")
