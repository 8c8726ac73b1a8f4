"""Custom resources with lists as maps and sets and with rules in CEL; and, of administrators, their definitions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import orjson

from stall.case import BODY, Case
from stall.message import YAML, Message
from stall.setup import GADGETS, WIDGETS
from stall.shuffled import shuffled
from support.definitions import definition, version

_DEFINITIONS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions?dryRun=All"


def _gadget(name: str, spec: Callable[[int], dict[str, Any]], most: int = 10_000_000, limit: int = BODY) -> Case:
    def message(n: int) -> Message:
        body = {
            "apiVersion": "stall.example.com/v1",
            "kind": "Gadget",
            "metadata": {"generateName": "a"},
            "spec": spec(n),
        }
        return Message("POST", f"{GADGETS}?dryRun=All", body=orjson.dumps(body))

    return Case(f"custom resource: {name}", "user", message, limit, most)


def _widget(name: str, fields: Callable[[int], str], media_type: str = "application/json") -> Case:
    def message(n: int) -> Message:
        head = '{"apiVersion":"stall.example.com/v1","kind":"Widget","metadata":{"generateName":"a"},"x":'
        return Message("POST", f"{WIDGETS}?dryRun=All", body=(head + fields(n) + "}").encode(), media_type=media_type)

    return Case(f"custom resource: {name}", "user", message, BODY)


def _definition(name: str, schema: Callable[[int], dict[str, Any]]) -> Case:
    def message(n: int) -> Message:
        root = {"type": "object", "properties": {"spec": schema(n)}}
        return Message(
            "POST", _DEFINITIONS, body=orjson.dumps(definition("large.example.com", "Large", version(schema=root)))
        )

    return Case(f"definition: {name}", "admin", message, 1 << 20)


def _properties(n: int, schema: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": {f"p{i}": schema for i in range(n)}}


def _rules(n: int) -> dict[str, Any]:
    return {
        "type": "object",
        "x-kubernetes-validations": [{"rule": f"self.a != {i}"} for i in range(n)],
        "properties": {"a": {"type": "integer"}},
    }


CASES: Final = [
    _gadget("list as a map", lambda n: {"items": [{"name": f"a{i}"} for i in range(n)]}),
    _gadget("list as a map, duplicates", lambda n: {"items": [{"name": "a"}] * n}),
    _gadget("list as a map without keys", lambda n: {"items": [{}] * n}),
    _gadget("list as a set", lambda n: {"set": [f"a{i}" for i in range(n)]}),
    _gadget("list as a set, duplicates", lambda n: {"set": ["a"] * n}),
    _gadget("list as a set of objects", lambda n: {"objects": [{"a": f"{i}"} for i in range(n)]}),
    _gadget("list as a set of equal objects", lambda n: {"objects": [{"a": "a"}] * n}),
    _gadget("numbers under a rule", lambda n: {"numbers": list(range(n))}, 10_000),
    _gadget("too many numbers under a rule", lambda n: {"numbers": [1] * n}),
    _gadget("pattern", lambda n: {"pattern": "a" * n + "!"}),
    _gadget("slow pattern, 30 kB", lambda n: {"slow": "é" * (n // 2)}, limit=30_000),
    _gadget("digits of a duration", lambda n: {"duration": "9" * n}),
    _gadget("values outside the enum", lambda n: {"choice": ["d"] * n}),
    _gadget("values of another type", lambda n: {"set": [1] * n}),
    _gadget("unknown fields", lambda n: {f"u{i}": 1 for i in range(n)}),
    _gadget("unknown fields below", lambda n: {"items": [{"name": f"a{i}", "u": 1} for i in range(n)]}),
    _widget("list", lambda n: "[" + ",".join(["0"] * n) + "]"),
    _widget("nested lists", lambda n: "[" + ",".join(["[" * 90 + "]" * 90] * n) + "]"),
    _widget("map, shuffled", lambda n: "{" + ",".join(shuffled('"k#":1', n)) + "}"),
    _widget("list of objects", lambda n: "[" + ",".join(['{"a":1}'] * n) + "]"),
    _widget("map", lambda n: "{" + ",".join(f'"k{i}":1' for i in range(n)) + "}"),
    _widget("map of maps", lambda n: "{" + ",".join(f'"k{i}":{{"a":{{}}}}' for i in range(n)) + "}"),
    _widget("floats", lambda n: "[" + ",".join(["1.5e3"] * n) + "]"),
    _widget("long numbers", lambda n: "[" + ",".join(["9" * 300] * n) + "]"),
    _widget("nested", lambda n: "[" + ",".join(['{"a":' * 90 + "1" + "}" * 90] * n) + "]"),
    _widget("one long string", lambda n: '"' + "a" * n + '"'),
    _widget("YAML", lambda n: "[" + ",".join([' {"a":1}'] * n) + "]", YAML),
    _definition("properties", lambda n: _properties(n, {"type": "string"})),
    _definition("properties with patterns", lambda n: _properties(n, {"type": "string", "pattern": "^(a+)+$"})),
    _definition(
        "properties with different patterns",
        lambda n: {
            "type": "object",
            "properties": {f"p{i}": {"type": "string", "pattern": f"^[a-z]{{1,63}}{i}$"} for i in range(n)},
        },
    ),
    _definition("rules", _rules),
    _definition(
        "one long rule",
        lambda n: {**_rules(0), "x-kubernetes-validations": [{"rule": " || ".join(["self.a == 1"] * n)}]},
    ),
    _definition("enum", lambda n: {"type": "string", "enum": [f"a{i}" for i in range(n)]}),
    _definition("required", lambda n: {"type": "object", "required": [f"a{i}" for i in range(n)]}),
    _definition("not structural", lambda n: _properties(n, {})),
]
