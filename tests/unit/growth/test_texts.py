"""Tests that matching and parsing long texts of a request takes time linear in their length."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from support.growth import assert_linear
from tetrapod.core.podspec import volume_sources
from tetrapod.core.podspec.downward import ENV_FIELDS, field_ref
from tetrapod.machinery import string_formats
from tetrapod.machinery.cel import time
from tetrapod.machinery.golang import pem
from tetrapod.machinery.serializer import yaml_flow

_BEGIN = b"-----BEGIN A-----\n"


def _refer(path: str) -> None:
    field_ref({"apiVersion": "v1", "fieldPath": path}, ENV_FIELDS, "p")


def _mount(name: str) -> None:
    volume_sources.iscsi({"targetPortal": "t", "iqn": name}, "p")


TEXTS: dict[str, tuple[Callable[[Any], object], Callable[[int], Any]]] = {
    "JSON of blank lines": (yaml_flow.decode, lambda n: b"{" + b"\n" * 10 * n + b"}"),
    "JSON of blanks and lines": (yaml_flow.decode, lambda n: b"{" + b" \n" * 10 * n + b"}"),
    "PEM blocks without an end": (pem.blocks, lambda n: _BEGIN * n),
    "PEM blocks without an end before one": (pem.blocks, lambda n: _BEGIN * n + b"-----END A-----\n"),
    "ends of PEM blocks": (pem.blocks, lambda n: _BEGIN + b"-----END B-----\n" * n),
    "headers of PEM blocks": (pem.blocks, lambda n: (_BEGIN + b"a: b\n\n-----END A-----\n") * n),
    "headers of a PEM block": (pem.blocks, lambda n: _BEGIN + b"a: b\n" * n + b"\n-----END A-----\n"),
    "colons behind PEM blocks": (pem.blocks, lambda n: (_BEGIN + b"-----END A:\n") * n),
    "subscripts of a field path": (_refer, lambda n: "['" * n + "']"),
    "names of an iSCSI target": (_mount, lambda n: "iqn.2001-04.a" * n + ":,"),
    "digits of a duration": (lambda text: string_formats.matches("duration", text), lambda n: "9" * n),
    "digits of a duration in CEL": (time.parse_words, lambda n: "9" * n),
}


@pytest.mark.parametrize("case", TEXTS)
def test_long_text_is_matched_in_linear_time(case: str) -> None:
    operation, make = TEXTS[case]
    assert_linear(operation, make)
