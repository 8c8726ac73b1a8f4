"""Tests of the health check paths that are open to callers who cannot be authenticated."""

from __future__ import annotations

import pytest

from tetrapod.generic.authorization.interface import Attributes, Decision
from tetrapod.generic.authorization.union import HealthPaths
from tetrapod.machinery.user import ANONYMOUS


@pytest.mark.parametrize(
    ("path", "open_to_all"),
    [
        ("/livez", True),
        ("/readyz", True),
        ("/healthz", True),
        ("/livez/ping", False),
        ("/readyz/etcd", False),
        ("/livez/../version", False),
    ],
)
async def test_only_the_checks_as_a_whole_are_open(path: str, open_to_all: bool) -> None:
    """A single check reveals internals, so it needs authorization."""
    answer = await HealthPaths().authorize(Attributes(ANONYMOUS, "get", path=path))
    assert (answer.decision is Decision.ALLOW) is open_to_all


async def test_a_resource_with_that_name_is_not_a_health_check() -> None:
    answer = await HealthPaths().authorize(Attributes(ANONYMOUS, "get", resource_request=True, path="/livez"))
    assert answer.decision is Decision.NO_OPINION


@pytest.mark.parametrize(("verb", "decision"), [("get", Decision.ALLOW), ("head", Decision.NO_OPINION)])
async def test_the_verbs_can_be_limited(verb: str, decision: Decision) -> None:
    answer = await HealthPaths(frozenset({"get"})).authorize(Attributes(ANONYMOUS, verb, path="/readyz"))
    assert answer.decision is decision
