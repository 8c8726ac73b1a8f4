"""Tests of the variables `claims` and `user` in expressions: they are objects of upstream's lazy.MapValue, not maps."""

from __future__ import annotations

from typing import Any

import pytest

from tetrapod.auth.oidc.expressions import (
    CLAIMS,
    USER,
    ExpressionError,
    claims_value,
    compile_claims,
    compile_user,
    user_value,
)
from tetrapod.machinery.user import UserInfo

_CLAIMS = {"sub": "jane", "x": {"a": 1, "b.c": "d", "e__dot__f": "g"}, "list": [{"b.c": "d"}], "empty": {}}


def _evaluate(text: str, claims: dict[str, Any] = _CLAIMS) -> Any:
    return compile_claims(text).evaluate(CLAIMS, claims_value(claims))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("claims.exists(value, value == 'jane')", True),
        ("claims.exists(value, value == 'sub')", False),
        ("claims.x == 1", False),
        ("1 == claims.x", False),
        ("claims.empty == {}", True),
        ("claims == claims", True),
        ("claims.x.b__dot__c", "d"),
        ("claims.list[0].b__dot__c", "d"),
        ("'a' in claims.x && 'b__dot__c' in claims.x", True),
        ("size(claims.x)", 3),
        ("dyn(claims.x).exists(key, key == 'b.c')", True),
        ("optional.ofNonZeroValue(claims.empty).hasValue()", True),
        ("optional.ofNonZeroValue(claims).hasValue()", True),
        ("type(claims) == map", False),
        ("has(claims.nothing)", False),
    ],
)
def test_claims_are_an_object_with_maps_in_it(text: str, value: Any) -> None:
    assert _evaluate(text) == value


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("'sub' in claims", "no such overload"),
        ("size(claims)", "no such overload: size"),
        ("claims == {}", "no such overload"),
        ("claims.all(key, value, value != '')", "no such key: jane"),
        ("dyn(claims.x).all(key, value, value != '')", "no such key: e__dot__f"),
    ],
)
def test_claims_have_neither_size_nor_membership(text: str, message: str) -> None:
    with pytest.raises(ExpressionError) as rejected:
        _evaluate(text)
    assert str(rejected.value) == f"expression '{text}' resulted in error: {message}"


def test_iterating_over_claims_with_an_escaped_name_is_an_error() -> None:
    with pytest.raises(ExpressionError, match="no such key: a__dot__b"):
        _evaluate("claims.all(value, value == 'jane')", {"sub": "jane", "a__dot__b": 1})


def test_the_user_has_its_fields_as_values() -> None:
    user = user_value(UserInfo("jane", "u", ("a", "b"), {"example.com/t": ("x",)}))
    for text in (
        "dyn(user).exists(value, value == 'jane')",
        "user.groups == ['a', 'b']",
        "'example.com/t' in user.extra && size(user.extra) == 1",
        "user.extra.all(key, key == 'example.com/t')",
    ):
        assert compile_user(text).evaluate(USER, user) is True
    with pytest.raises(ExpressionError, match="no such overload: size"):
        compile_user("size(dyn(user)) == 4").evaluate(USER, user)
