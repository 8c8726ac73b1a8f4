"""The Table rows of Ingresses."""

from __future__ import annotations

import pytest

from tetrapod.core.networking.ingresses import TABLE


@pytest.mark.parametrize(
    ("hosts", "cell"),
    [
        ([], "*"),
        ([""], "*"),
        (["a", "", "b"], "a,b"),
        (["a", "b", "c"], "a,b,c"),
        (["a", "b", "c", "d", "e"], "a,b,c + 2 more..."),
        (["a", "b", "c", ""], "a,b,c + 1 more..."),
        (["", "a", "b", "c", "d"], "a,b,c + 2 more..."),
    ],
)
def test_hosts_of_an_ingress_are_three_and_a_number_of_rules(hosts: list[str], cell: str) -> None:
    rules = [{"host": host} if host else {} for host in hosts]
    row = TABLE.row({"metadata": {"name": "i"}, "spec": {"rules": rules}})
    assert row[2] == cell
