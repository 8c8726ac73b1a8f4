"""Validation of EncryptionConfiguration.

Upstream: staging/src/k8s.io/apiserver/pkg/apis/apiserver/validation/validation_encryption.go
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from itertools import permutations
from typing import Final

from tetrapod.machinery import field
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.golang.durations import format_nanoseconds, parse_nanoseconds
from tetrapod.machinery.golang.quoting import go_quote
from tetrapod.machinery.golang.urls import BadUrl
from tetrapod.machinery.golang.urls import parse as parse_url
from tetrapod.machinery.gvk import GroupResource, Object

EVERYTHING: Final = GroupResource("*", "*")
PROVIDERS: Final = ("kms", "aesgcm", "aescbc", "secretbox", "identity")
_AES_SIZES: Final = (16, 24, 32)
_SIZES: Final = {"aesgcm": _AES_SIZES, "aescbc": _AES_SIZES, "secretbox": (32,)}
_NOT_REST: Final = frozenset({"apiserveripinfo", "serviceipallocations", "servicenodeportallocations"})
_OVERLAP: Final = (
    "using overlapping resources such as 'secrets' and '*.' in the same resource list is not allowed "
    "as they will be masked"
)
_EVENTS: Final = (
    "'*.events.k8s.io' objects are stored using the 'events' API group in etcd. Use 'events' instead in the config file"
)
_STAR: Final = "use '*.' to encrypt all the resources from core API group or *.* to encrypt all resources"


def parse_resource(text: str) -> GroupResource:
    """Parse a resource name such as `secrets`, `deployments.apps`, `*.apps`, `*.` or `*.*`.

    The name is not validated.
    """
    resource, _, group = text.partition(".")
    return GroupResource(group, resource)


def secret_of(key: Object) -> bytes:
    """Return the decoded secret of a key. Raises ValueError (binascii.Error) if it is not base64 as Go accepts it."""
    return base64.b64decode(key["secret"].replace("\n", "").replace("\r", ""), validate=True)


def validate(config: Object, *, reload: bool) -> list[FieldError]:
    """Return the errors of a configuration with defaults, in upstream's order; empty if it is valid.

    Args:
        reload: whether the file is reloaded automatically; then names of KMS v1 plugins must be unique too.
    """
    listed = config.get("resources") or []
    if not listed:
        return [field.required("resources", "at least one resources is required")]
    errors: list[FieldError] = []
    names: set[str] = set()
    for i, entry in enumerate(listed):
        path = field.index("resources", i)
        resources, providers = entry.get("resources") or [], entry.get("providers") or []
        if not resources:
            errors.append(field.required(f"{path}.resources", f"at least one {path}.resources is required"))
        errors += _overlaps(resources, f"{path}.resources")
        errors += _resource_names(resources, f"{path}.resources")
        if not providers:
            errors.append(field.required(f"{path}.providers", f"at least one {path}.providers is required"))
        for j, provider in enumerate(providers):
            errors += _provider(provider, field.index(f"{path}.providers", j), names, reload)
    return errors


def _overlaps(resources: Sequence[str], path: str) -> list[FieldError]:
    pairs = list(permutations(map(parse_resource, resources), 2))
    errors = []
    if any(first == second for first, second in pairs):
        errors.append(field.invalid(path, resources, "the same resource cannot be specified multiple times"))
    if any(_masks(first, second) for first, second in pairs if first != second):
        errors.append(field.invalid(path, resources, _OVERLAP))
    return errors


def _masks(pattern: GroupResource, resource: GroupResource) -> bool:
    return pattern == EVERYTHING or (pattern.group == resource.group and "*" in (pattern.resource, resource.resource))


def _resource_names(resources: Sequence[str], path: str) -> list[FieldError]:
    checked = [(field.index(path, i), name, _name_error(name)) for i, name in enumerate(resources)]
    return [field.invalid(element_path, name, error) for element_path, name, error in checked if error]


def _name_error(name: str) -> str:
    resource = parse_resource(name)
    if name.lower() != name:
        return "resource name should not contain capital letters"
    if name == "*":
        return _STAR
    if name in _NOT_REST:
        return "resources which do not have REST API/s cannot be encrypted"
    if resource.group == "events.k8s.io":
        return _EVENTS
    if resource.group == "extensions":
        return "'extensions' group has been removed and cannot be used for encryption"
    if resource.group == "*" and resource.resource != "*":
        return "encrypting the same resource across groups is not supported"
    return ""


def _provider(provider: Object, path: str, kms_names: set[str], reload: bool) -> list[FieldError]:
    configured = [name for name in PROVIDERS if provider.get(name) is not None]
    errors = []
    if not configured:
        text = "provider does not contain any of the expected providers: KMS, AESGCM, AESCBC, Secretbox, Identity"
        errors.append(field.invalid(path, _redacted(provider), text))
    elif len(configured) > 1:
        text = "more than one provider specified in a single element, should split into different list elements"
        errors.append(field.invalid(path, _redacted(provider), text))
    if "kms" in configured:
        errors += _kms(provider["kms"], f"{path}.kms", kms_names, reload)
        kms_names.add(provider["kms"].get("name") or "")
    elif configured and configured[0] in _SIZES:
        errors += _keys(
            provider[configured[0]].get("keys") or [], f"{path}.{configured[0]}.keys", _SIZES[configured[0]]
        )
    return errors


def _redacted(provider: Object) -> Object:
    """Return a new dictionary that an error text shows in place of a provider.

    Its keys are the Go field names of upstream's internal struct, and each secret is the text "REDACTED". Upstream
    shows the secrets.

    Args:
        provider: an entry of `providers`, with defaults.
    """
    redacted: Object = {}
    for name, go in (("aesgcm", "AESGCM"), ("aescbc", "AESCBC"), ("secretbox", "Secretbox")):
        options = provider.get(name)
        keys = [{"Name": key.get("name") or "", "Secret": "REDACTED"} for key in (options or {}).get("keys") or []]
        redacted[go] = None if options is None else {"Keys": keys or None}
    redacted["Identity"] = provider.get("identity")
    kms = provider.get("kms")
    redacted["KMS"] = (
        None
        if kms is None
        else {
            "APIVersion": kms["apiVersion"],
            "Name": kms.get("name") or "",
            "CacheSize": kms.get("cachesize"),
            "Endpoint": kms.get("endpoint") or "",
            "Timeout": format_nanoseconds(parse_nanoseconds(kms["timeout"])),
        }
    )
    return redacted


def _keys(keys: Sequence[Object], path: str, sizes: Sequence[int]) -> list[FieldError]:
    if not keys:
        return [field.required(path, "at least one keys is required")]
    return [error for i, key in enumerate(keys) for error in _key(key, field.index(path, i), sizes)]


def _key(key: Object, path: str, sizes: Sequence[int]) -> list[FieldError]:
    errors = [] if key.get("name") else [field.required(f"{path}.name", "name is a mandatory field for a key")]
    if not key.get("secret"):
        return [*errors, field.required(f"{path}.secret", "secret is a mandatory field for a key")]
    try:
        size = len(secret_of(key))
    except (binascii.Error, ValueError):
        return [*errors, field.invalid(f"{path}.secret", "REDACTED", "secrets must be base64 encoded")]
    if size not in sizes:
        text = f"secret is not of the expected length, got {size}, expected one of [{' '.join(map(str, sizes))}]"
        errors.append(field.invalid(f"{path}.secret", "REDACTED", text))
    return errors


def _kms(kms: Object, path: str, names: set[str], reload: bool) -> list[FieldError]:
    version, name = kms["apiVersion"], kms.get("name") or ""
    errors = []
    if not name:
        errors.append(field.required(f"{path}.name", "name is a mandatory field for a provider"))
    if version != "v1" and ":" in name:
        errors.append(field.invalid(f"{path}.name", name, f"invalid KMS provider name {name}, must not contain ':'"))
    if (reload or version != "v1") and name in names:
        errors.append(field.invalid(f"{path}.name", name, f"duplicate KMS provider name {name}, names must be unique"))
    nanoseconds = parse_nanoseconds(kms["timeout"])
    if nanoseconds <= 0:
        errors.append(
            field.invalid(f"{path}.timeout", format_nanoseconds(nanoseconds), "timeout should be a positive value")
        )
    errors += _endpoint(kms.get("endpoint") or "", f"{path}.endpoint")
    size = kms.get("cachesize")
    if version != "v1" and size is not None:
        errors.append(field.invalid(f"{path}.cachesize", size, "cachesize is not supported in v2"))
    if version == "v1" and size == 0:
        errors.append(
            field.invalid(f"{path}.cachesize", size, "cachesize should be a positive value, or negative to disable")
        )
    if version not in {"v1", "v2"}:
        text = "unsupported apiVersion apiVersion for KMS provider, only v1 and v2 are supported"
        errors.append(field.invalid(f"{path}.apiVersion", version, text))
    return errors


def _endpoint(endpoint: str, path: str) -> list[FieldError]:
    if not endpoint:
        return [field.invalid(path, "", "endpoint is a mandatory field for a kms")]
    try:
        scheme = parse_url(endpoint).scheme
    except BadUrl as error:
        return [
            field.invalid(
                path, endpoint, f"invalid endpoint for kms provider, error: parse {go_quote(endpoint)}: {error}"
            )
        ]
    if scheme != "unix":
        text = f"unsupported scheme {go_quote(scheme)} for KMS provider, only unix is supported"
        return [field.invalid(path, endpoint, text)]
    return []
