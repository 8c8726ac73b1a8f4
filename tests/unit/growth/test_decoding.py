"""Tests that decoding and encoding take time linear in the length of the body, for any content."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from support.growth import assert_linear
from tetrapod.auth.rbac.coverage import missing_rights
from tetrapod.auth.rbac.escalation import missing_text
from tetrapod.machinery.gvk import GroupVersionKind
from tetrapod.machinery.schema import decode as typed
from tetrapod.machinery.serializer import json as json_serializer
from tetrapod.machinery.serializer import yaml
from tetrapod.machinery.serializer.errors import DecodeError
from tetrapod.machinery.types import schema_for

POD = schema_for(GroupVersionKind("", "v1", "Pod"))


def lines(size: int, line: str) -> str:
    return "".join(line.replace("%", str(i)) for i in range(size))


YAML: dict[str, Callable[[int], str]] = {
    "members": lambda n: lines(n, "a%: x\n"),
    "one member again and again": lambda n: lines(n, "a: x\n"),
    "elements": lambda n: lines(n, "- a%\n"),
    "lists": lambda n: "a: [" + "[]," * n + "]",
    "maps": lambda n: "a: [" + "{a: b}," * n + "]",
    "a folded text": lambda n: "a: >\n" + lines(n, "  x%\n\n"),
    "a plain text of lines": lambda n: "a: x\n" + lines(n, "  x%\n"),
    "escapes": lambda n: 'a: "' + "\\n" * n + '"',
    "quotes": lambda n: "a: '" + "''" * n + "'",
    "comments": lambda n: lines(n, "# %\n") + "a: b",
    "anchors": lambda n: lines(n, "a%: &a% x\n"),
    "aliases": lambda n: "a: &a {b: c}\n" + lines(n, "b%: *a\n"),
    "merges": lambda n: "a: &a {b: c}\n" + lines(n, "b%: {<<: *a, d: e}\n"),
    "merges into one": lambda n: "a: &a {b: c}\nb: {<<: [" + "*a," * n + "]}\n",
    "numbers": lambda n: "a: [" + "1.5e3," * n + "]",
    "a long number": lambda n: "a: " + "9" * n,
    "block keys": lambda n: lines(n, "? a%\n: b\n"),
    "tabs": lambda n: "a: b" + "\t" * n,
    "brackets never closed": lambda n: "a: " + "[" * n,
    "dashes": lambda n: "- " * n,
    "documents": lambda n: "---\na: b\n" * n,
}


@pytest.mark.parametrize("case", YAML)
def test_yaml_is_decoded_in_linear_time(case: str) -> None:
    def decode(body: bytes) -> None:
        try:
            yaml.decode(body)
        except DecodeError:
            return

    assert_linear(decode, lambda n: YAML[case](n).encode())


JSON: dict[str, Callable[[int], str]] = {
    "duplicates": lambda n: "{" + '"a":1,' * n + '"b":2}',
    "duplicates of objects": lambda n: "{" + '"a":{"b":1},' * n + '"b":2}',
    "objects with duplicates": lambda n: '{"a":[' + '{"a":1,"a":2},' * n + "{}]}",
    "members": lambda n: "{" + ",".join(f'"a{i}":1' for i in range(n)) + "}",
    "exponents": lambda n: '{"a":[' + "1e3," * n + "1]}",
    "escapes": lambda n: '{"a":"' + "\\u0041" * n + '"}',
    "broken at the end": lambda n: '{"a":[' + "1," * n,
}


@pytest.mark.parametrize("case", JSON)
@pytest.mark.parametrize("unstructured", [False, True])
def test_json_is_decoded_in_linear_time(case: str, unstructured: bool) -> None:
    def decode(body: bytes) -> None:
        try:
            json_serializer.strict_errors(body, json_serializer.decode(body, unstructured=unstructured).duplicates)
        except DecodeError:
            return

    assert_linear(decode, lambda n: JSON[case](n).encode())


def test_yaml_is_encoded_in_linear_time() -> None:
    assert_linear(
        yaml.encode,
        lambda n: {"a": [{"b": f"x\n{i}", "c": [i] * 3} for i in range(n)], **{f"k{i}": "v" for i in range(n)}},
    )


TYPED: dict[str, Callable[[int], Any]] = {
    "unknown fields": lambda n: {f"a{i}": i for i in range(n)},
    "unknown fields of elements": lambda n: {"spec": {"containers": [{"name": "c", "x": 1} for _ in range(n)]}},
    "nulls": lambda n: {"spec": {"containers": [{"name": None, "env": None} for _ in range(n)]}},
    "quantities": lambda n: {"spec": {"containers": [{"resources": {"limits": {f"a{i}": "1500m" for i in range(n)}}}]}},
    "a wrong type at the end": lambda n: {"spec": {"containers": [*({"name": "c"} for _ in range(n)), {"name": 1}]}},
}


@pytest.mark.parametrize("case", TYPED)
def test_objects_are_shaped_in_linear_time(case: str) -> None:
    def decode(obj: Any) -> None:
        try:
            typed.decode(POD, obj)
        except typed.DecodeError:
            return

    assert_linear(decode, TYPED[case])


def rule(size: int, **more: list[str]) -> dict[str, list[str]]:
    return {key: [f"{key}{i}" for i in range(size)] for key in ("apiGroups", "resources", "verbs")} | more


RULES: dict[str, Callable[[int], tuple[Any, Any]]] = {
    "one large rule": lambda n: ([], [rule(n)]),
    "one large rule that is held": lambda n: ([rule(n)], [rule(n)]),
    "many small rules": lambda n: ([rule(1)], [rule(2)] * n),
    "many rules held": lambda n: ([rule(2, resourceNames=[f"n{i}"]) for i in range(n)], [rule(2)]),
    "names": lambda n: ([rule(1, resourceNames=["a"])], [rule(1, resourceNames=[f"n{i}" for i in range(n)])]),
    "URLs": lambda n: (
        [{"verbs": ["*"], "nonResourceURLs": ["/a*"]}],
        [{"verbs": ["get"], "nonResourceURLs": ["/a", "/b"] * n}],
    ),
}


@pytest.mark.parametrize("case", RULES)
def test_rules_are_compared_in_linear_time(case: str) -> None:
    assert_linear(lambda given: missing_rights(*given), RULES[case])
    assert_linear(lambda given: missing_text(*given), RULES[case])
