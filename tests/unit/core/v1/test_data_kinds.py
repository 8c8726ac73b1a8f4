"""Tests of the validation of ConfigMaps and Secrets."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from tetrapod.core.v1 import config_maps
from tetrapod.core.v1.secrets import validation
from tetrapod.machinery.gvk import Object

_LIMIT = 1 << 20


def config_map(**parts: Any) -> Object:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "ns"}, **parts}


def secret(kind: str = "Opaque", **data: str) -> Object:
    encoded = {key: base64.b64encode(value.encode()).decode() for key, value in data.items()}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "s", "namespace": "ns"},
        "type": kind,
        "data": encoded,
    }


def fields(errors: list[Any]) -> list[str]:
    return [error.field for error in errors]


def test_keys_of_a_config_map() -> None:
    assert config_maps.validate(config_map(data={"a.b_c-D": "x"})) == []
    assert fields(config_maps.validate(config_map(data={"a/b": "x"}))) == ["data[a/b]"]
    assert fields(config_maps.validate(config_map(data={"..": "x"}))) == ["data[..]"]
    assert fields(config_maps.validate(config_map(data={"k": "x"}, binaryData={"k": "eA=="}))) == ["data[k]"]


def test_text_and_bytes_of_a_config_map_count_together() -> None:
    half = _LIMIT // 2
    binary = base64.b64encode(b"x" * half).decode()
    assert config_maps.validate(config_map(data={"a": "x" * half}, binaryData={"b": binary})) == []
    (error,) = config_maps.validate(config_map(data={"a": "x" * (half + 1)}, binaryData={"b": binary}))
    assert "may not be more than 1048576 bytes" in str(error)


def test_immutable_data_cannot_be_changed() -> None:
    old = config_map(data={"a": "1"}, immutable=True)
    assert config_maps.validate_update(config_map(data={"a": "1"}, immutable=True), old) == []
    assert fields(config_maps.validate_update(config_map(data={"a": "2"}, immutable=True), old)) == ["data"]
    assert fields(config_maps.validate_update(config_map(data={"a": "1"}), old)) == ["immutable"]


@pytest.mark.parametrize(
    ("obj", "wanted"),
    [
        (secret(anything="x"), []),
        (secret("kubernetes.io/tls"), ["data[tls.crt]", "data[tls.key]"]),
        (secret("kubernetes.io/ssh-auth"), ["data[ssh-privatekey]"]),
        (secret("kubernetes.io/basic-auth", username="u"), []),
        (secret("kubernetes.io/service-account-token"), ["metadata.annotations[kubernetes.io/service-account.name]"]),
        (secret("kubernetes.io/dockerconfigjson"), ["data[.dockerconfigjson]"]),
        (secret("kubernetes.io/dockerconfigjson", **{".dockerconfigjson": "no json"}), ["data[.dockerconfigjson]"]),
        (secret("kubernetes.io/dockerconfigjson", **{".dockerconfigjson": "{}"}), []),
    ],
)
def test_types_of_secrets(obj: Object, wanted: list[str]) -> None:
    assert fields(validation.validate(obj)) == wanted


def test_rejections_do_not_contain_values_of_secrets() -> None:
    errors = validation.validate(secret("kubernetes.io/dockerconfigjson", **{".dockerconfigjson": "hunter2"}))
    errors += validation.validate_update(secret("example.com/other", a="hunter2"), secret(a="hunter2"))
    assert errors
    assert not any("hunter2" in str(error) for error in errors)
