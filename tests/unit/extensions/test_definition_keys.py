"""Tests of `Crd.serving_key`: two revisions of a definition have the same key only if they are served alike."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import orjson

from tetrapod.extensions.crds import Crd
from tetrapod.generic.storage.entry import Entry


def crd(revision: int, **metadata: Any) -> Crd:
    spec = {"group": "example.com", "names": {"plural": "widgets"}, "scope": "Cluster", "versions": []}
    raw = orjson.dumps({"metadata": {"name": "widgets.example.com", **metadata}, "spec": spec})
    return Crd(cast("Entry", SimpleNamespace(raw=raw, revision=revision)))


def test_the_key_of_a_definition_without_generation_changes_with_every_revision() -> None:
    assert crd(5).serving_key != crd(6).serving_key
    assert crd(5).serving_key == crd(5).serving_key


def test_the_key_of_a_definition_with_generation_changes_only_with_the_generation() -> None:
    assert crd(5, uid="a", generation=1).serving_key == crd(6, uid="a", generation=1).serving_key
    assert crd(5, uid="a", generation=1).serving_key != crd(6, uid="a", generation=2).serving_key
