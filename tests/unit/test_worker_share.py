"""The share of each worker in the limits of the whole server."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest

from tetrapod.apps.options.worker import Worker
from tetrapod.generic.http.listening import ConnectionSource


@pytest.mark.parametrize(
    ("limit", "shares"), [(600, [200, 200, 200]), (400, [134, 133, 133]), (2, [1, 1, 1]), (0, [0, 0, 0])]
)
def test_shares_add_up_to_the_limit_if_each_worker_can_have_one(limit: int, shares: list[int]) -> None:
    source = cast(ConnectionSource, None)
    assert [Worker(index, 3, Path(), source).share(limit) for index in range(3)] == shares
