"""Tests of the error for a map that does not fit a struct: it names the first mistake in the order of the struct's
fields.
"""

from __future__ import annotations

from typing import Any

import pytest

from tetrapod.generic.endpoints.struct_conversion_errors import decoding_error
from tetrapod.machinery.types.definitions import load

SERVICE = load("io.k8s.api.core.v1.Service")


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"type": 5, "ports": "x"}, "cannot restore slice from string"),  # ports is the first field of a ServiceSpec
        ({"type": 1.5, "selector": 5}, "cannot restore map from int64"),
        ({"type": 5}, "cannot convert int64 to v1.ServiceType"),
        ({"sessionAffinityConfig": [], "externalName": True}, "unrecognized type: string"),
        ({"nobody": 5, "sessionAffinityConfig": []}, "cannot restore struct from: slice"),
        # a type with its own unmarshaler gets JSON
        ({"type": 5, "ports": [{"targetPort": True}]}, "json: cannot unmarshal bool into Go value of type int32"),
    ],
)
def test_the_first_mismatched_field_is_reported(spec: Any, words: str) -> None:
    assert decoding_error({"apiVersion": "v1", "kind": "Service", "metadata": {}, "spec": spec}, SERVICE) == words


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (["x"], "unrecognized type: uint8"),
        ([1.5], "cannot convert float64 to uint8"),
        ([{}], "unrecognized type: uint8"),
    ],
)
def test_the_mistaken_element_of_bytes_is_reported(data: Any, words: str) -> None:
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {}, "data": {"a": data}}
    assert decoding_error(secret, load("io.k8s.api.core.v1.Secret")) == words


def test_an_invalid_kind_is_reported_before_other_errors() -> None:
    assert decoding_error({"metadata": 5, "kind": []}, SERVICE) == "unrecognized type: string"
