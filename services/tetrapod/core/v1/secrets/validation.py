"""Validation of Secret and of the keys that each type requires. Error messages never show values.

Upstream: pkg/apis/core/validation/validation.go, ValidateSecret and ValidateSecretUpdate.
"""

from __future__ import annotations

import base64
import json
from typing import Final

from tetrapod.core.validation.data import MAX_SIZE, decoded_size, frozen
from tetrapod.core.validation.names import errors_from, immutable
from tetrapod.machinery import field
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.golang.json_syntax import explain
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.metadata import validate_generate_name
from tetrapod.machinery.names import is_config_map_key, name_is_dns_subdomain
from tetrapod.machinery.sorting import sort_large

_ACCOUNT_NAME: Final = "kubernetes.io/service-account.name"
_DOCKER_KEYS: Final = {"kubernetes.io/dockercfg": ".dockercfg", "kubernetes.io/dockerconfigjson": ".dockerconfigjson"}
_REDACTED: Final = "<secret contents redacted>"


def validate(obj: Object) -> list[FieldError]:
    """Validate a Secret.

    Keys are valid, and the values have at most 1 MiB in total. The keys that the type requires exist and, for a token,
    the annotation with the service account's name. Docker configurations are valid JSON.
    """
    data = obj.get("data") or {}
    errors: list[FieldError] = []
    for key in sort_large(data):
        errors += errors_from(is_config_map_key, key, f"data[{key}]")
    if sum(map(decoded_size, data.values())) > MAX_SIZE:
        errors.append(field.too_long("data", MAX_SIZE))
    return errors + _type_errors(obj, data)


def _type_errors(obj: Object, data: Object) -> list[FieldError]:
    kind = obj.get("type") or ""
    if kind == "kubernetes.io/service-account-token":
        named = (obj["metadata"].get("annotations") or {}).get(_ACCOUNT_NAME)
        return [] if named else [field.required(f"metadata.annotations[{_ACCOUNT_NAME}]")]
    if kind in _DOCKER_KEYS:
        return _docker_errors(_DOCKER_KEYS[kind], data)
    if kind == "kubernetes.io/basic-auth" and "username" not in data and "password" not in data:
        return [field.required("data[username]"), field.required("data[password]")]
    if kind == "kubernetes.io/ssh-auth" and not data.get("ssh-privatekey"):
        return [field.required("data[ssh-privatekey]")]
    if kind == "kubernetes.io/tls":
        return [field.required(f"data[{key}]") for key in ("tls.crt", "tls.key") if key not in data]
    return []


def _docker_errors(key: str, data: Object) -> list[FieldError]:
    if key not in data:
        return [field.required(f"data[{key}]")]
    content = base64.b64decode(data[key])
    try:
        parsed = json.loads(content)
        detail = (
            ""
            if parsed is None or isinstance(parsed, dict)
            else f"json: cannot unmarshal {_go_kind(parsed)} into Go value of type map[string]interface {{}}"
        )
    except ValueError:
        detail = explain(content)
    return [field.invalid(f"data[{key}]", _REDACTED, detail)] if detail else []


def _go_kind(value: object) -> str:
    match value:
        case bool():
            return "bool"
        case str():
            return "string"
        case list():
            return "array"
        case _:
            return "number"


def validate_update(new: Object, old: Object) -> list[FieldError]:
    """Validate an updated Secret as a new one; its type is immutable.

    If the stored version has `immutable: true`, this and the data are immutable too. The errors of generateName follow
    those of immutable fields, as upstream.
    """
    errors = immutable(new.get("type", ""), old.get("type", ""), "type", typed=True) + frozen(new, old, "data")
    return errors + validate_generate_name(new["metadata"], name_is_dns_subdomain) + validate(new)
