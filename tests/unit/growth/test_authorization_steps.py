"""Tests that expressions about users and their permissions do not keep the event loop from running."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from support.issuer import AUDIENCE, issuer
from tetrapod.auth.authorizers.match_conditions import MatchConditions, compile_condition
from tetrapod.auth.oidc.authenticator import JwtAuthenticator
from tetrapod.generic.proxy.pool import BackendPool
from tetrapod.machinery.cel.environment import Program
from tetrapod.machinery.long_work import TakesTooLong

_SLOW = "{}.matches('a[ab]{{999}}c')"
_TEXT = "ab" * 15_000


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch) -> list[tuple[bool, bool]]:
    """Return the list of all evaluations: whether each runs in the main thread, and whether it was finished."""
    evaluated: list[tuple[bool, bool]] = []
    evaluate = Program.evaluate

    def recorded(self: Program, bindings: Any, **options: Any) -> Any:
        on_loop = threading.current_thread() is threading.main_thread()
        try:
            value = evaluate(self, bindings, **options)
        except TakesTooLong:
            evaluated.append((on_loop, False))
            raise
        evaluated.append((on_loop, True))
        return value

    monkeypatch.setattr(Program, "evaluate", recorded)
    return evaluated


@pytest.mark.parametrize(("user", "expected"), [("jane", [(True, True)]), (_TEXT, [(True, False), (False, True)])])
async def test_a_slow_match_condition_is_evaluated_in_a_thread(
    threads: list[tuple[bool, bool]], user: str, expected: list[tuple[bool, bool]]
) -> None:
    conditions = MatchConditions([compile_condition(_SLOW.format("request.user"))], "hook")
    assert await conditions.match({"user": user}) is False
    assert threads == expected


@pytest.mark.parametrize(("user", "expected"), [("jane", [(True, True)]), (_TEXT, [(True, False), (False, True)])])
async def test_a_slow_rule_about_claims_is_evaluated_in_a_thread(
    threads: list[tuple[bool, bool]], user: str, expected: list[tuple[bool, bool]]
) -> None:
    pool = BackendPool()
    with issuer() as provider:
        config = {
            "issuer": {"url": provider.url, "audiences": [AUDIENCE], "certificateAuthority": provider.ca},
            "claimMappings": {"username": {"claim": "sub", "prefix": ""}},
            "claimValidationRules": [{"expression": f"!{_SLOW.format('claims.sub')}"}],
        }
        made = JwtAuthenticator(config, pool)
        await made.run()
        found = await made.authenticate_token(provider.token(sub=user), ())
    await pool.close()
    assert found is not None
    assert found.user.name == user
    assert threads == expected
