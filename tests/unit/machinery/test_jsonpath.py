"""Tests of kubectl's JSONPath: the values that expressions find, the output, and the errors."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tetrapod.machinery import jsonpath

OBJECT: dict[str, Any] = {
    "metadata": {"name": "n", "annotations": {"example.com/key": "value"}},
    "spec": {
        "l": ["a", "b", "c"],
        "c": [{"type": "Ready", "status": "True"}, {"type": "Other", "status": "False"}],
        "o": {"b": {"deep": "x"}, "a": 1},
        "x": None,
        "f": 1.5,
    },
}


@pytest.mark.parametrize(
    ("template", "printed"),
    [
        ("{.spec.l[*]}", "a b c"),
        ("{.spec.l[0]}", "a"),
        ("{.spec.l[-1:]}", "c"),
        ("{.spec.l[0,2]}", "a c"),
        ("{.spec.l[::2]}", "a c"),
        ('{.spec.c[?(@.type=="Ready")].status}', "True"),
        ("{.spec.c[?(@.type!='Ready')].status}", "False"),
        ("{.spec.c[?(@.nope)].status}", ""),
        ("{.spec.o}", '{"a":1,"b":{"deep":"x"}}'),
        ("{.spec.o['a']}", "1"),
        ("{.spec..deep}", "x"),
        ("{.spec.x}", "<no value>"),
        ("{.spec.f}", "1.5"),
        (r"{.metadata.annotations.example\.com/key}", "value"),
        ("{range .spec.c[*]}{.type}={.status};{end}.", "Ready=True;Other=False;."),
        ("name: {$.metadata.name}{'\\n'}", "name: n\n"),
        ("{.nope.nope}", ""),
    ],
)
def test_templates_print_what_kubectl_prints(template: str, printed: str) -> None:
    assert jsonpath.compile(template).execute(OBJECT) == printed


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("{.spec", "unclosed action"),
        ("{.spec.l[}", "unterminated array"),
        ("{.spec.l[x]}", "invalid array index x"),
        ("{&}", "unrecognized character in action: U+0026 '&'"),
        ("{....}", "invalid multiple recursive descent"),
        ("{.a[?(@.b}", "unterminated filter"),
        ("{'a}", "unterminated quoted string"),
        ("{1.2.3}", "cannot parse number 1.2.3"),
    ],
)
def test_malformed_templates_are_rejected(template: str, message: str) -> None:
    with pytest.raises(jsonpath.JsonPathError) as raised:
        jsonpath.compile(template)
    assert str(raised.value) == message


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("{.spec.l[5]}", "array index out of bounds: index 5, length 3"),
        ("{.spec.o[0]}", "map[string]interface {} is not array or slice"),
        ("{.spec.c[?(@.type>1)]}", "incompatible types for comparison"),
        ("{nope}", "unrecognized identifier nope"),
    ],
)
def test_templates_that_find_nothing_raise_an_error(template: str, message: str) -> None:
    with pytest.raises(jsonpath.JsonPathError) as raised:
        jsonpath.compile(template).find(OBJECT)
    assert str(raised.value) == message


def test_missing_keys_may_be_an_error() -> None:
    with pytest.raises(jsonpath.JsonPathError, match="nope is not found"):
        jsonpath.compile("{.nope}", allow_missing_keys=False).find(OBJECT)


def test_first_returns_the_first_value_or_none() -> None:
    assert jsonpath.compile_path(".spec.o.a").first(OBJECT) == 1
    assert jsonpath.compile_path(".spec.l[9]").first(OBJECT) is None


@given(st.text(alphabet="{}[]().*,:?@$'\"\\=<>!az01-+ \n", max_size=25))
def test_any_template_is_parsed_or_rejected(text: str) -> None:
    with contextlib.suppress(jsonpath.JsonPathError):
        jsonpath.compile(text).execute(OBJECT)
