"""Keys of the store."""

from __future__ import annotations

import pytest

from tetrapod.generic.storage.backend import key_root


@pytest.mark.parametrize(
    ("prefix", "root"),
    [
        ("/registry", "/registry"),
        ("registry", "/registry"),
        ("//registry//a/", "/registry/a"),
        ("a/../b", "/b"),
        ("/", ""),
        ("", ""),
    ],
)
def test_the_etcd_prefix_begins_with_one_slash(prefix: str, root: str) -> None:
    assert key_root(prefix) == root
