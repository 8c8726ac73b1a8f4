"""Reads the EncryptionConfiguration file and sets defaults.

Upstream: staging/src/k8s.io/apiserver/pkg/apis/apiserver/v1/types_encryption.go, defaults.go;
pkg/server/options/encryptionconfig/config.go, loadConfig
"""

from __future__ import annotations

import hashlib
from typing import Any, Final

from tetrapod.generic.configuration.files import read
from tetrapod.generic.configuration.loading import load
from tetrapod.generic.configuration.schemas import duration, integer, kind, list_of, pointer, string, strings, struct
from tetrapod.generic.storage.encryption.validation import validate
from tetrapod.machinery.field import aggregate
from tetrapod.machinery.golang.quoting import go_quote
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.schema_node import SchemaNode

KIND: Final = "EncryptionConfiguration"
API_VERSION: Final = "apiserver.config.k8s.io/v1"
_TIMEOUT: Final = "3s"
_CACHE_SIZE: Final = 1000


def read_configuration(path: str, *, reload: bool) -> tuple[Object, str]:
    """Read, validate and default the configuration file. Return the configuration and the hash of the file.

    Args:
        reload: whether the file is reloaded automatically, which has stricter rules for plugin names.

    Raises:
        ValueError: the file cannot be used; with upstream's text.
    """
    try:
        data, digest = content(path)
        return _checked(path, data, reload), digest
    except ValueError as error:
        raise ValueError(f"error while parsing file: {error}") from None


def content(path: str) -> tuple[bytes, str]:
    """Return the bytes of the file and their hash ("sha256:…").

    Raises:
        ValueError: the file cannot be read or is empty; with upstream's text.
    """
    try:
        data = read(path)
    except ValueError as error:
        text = f"error reading encryption provider configuration file {go_quote(path)}: {error}"
        raise ValueError(f"error while loading file: {text}") from None
    if not data:
        raise ValueError(f"error while loading file: encryption provider configuration file {go_quote(path)} is empty")
    return data, f"sha256:{hashlib.sha256(data).hexdigest()}"


def _checked(path: str, data: bytes, reload: bool) -> Object:
    try:
        config = load(data, {(API_VERSION, KIND): _shape()})
    except ValueError as error:
        raise ValueError(f"error decoding encryption provider configuration file {go_quote(path)}: {error}") from None
    _default(config)
    if errors := validate(config, reload=reload):
        raise ValueError(aggregate(errors))
    return config


def _default(config: Object) -> None:
    for entry in config.get("resources") or []:
        for provider in entry.get("providers") or []:
            kms: Any = provider.get("kms")
            if kms is not None:
                kms["apiVersion"] = kms.get("apiVersion") or "v1"
                kms.setdefault("timeout", _TIMEOUT)
                if kms["apiVersion"] == "v1":
                    kms.setdefault("cachesize", _CACHE_SIZE)


def _shape() -> SchemaNode:
    keys = list_of(struct("v1.Key", name=string(), secret=string()))
    cache_size = pointer(integer("int32"))
    kms = struct(
        "v1.KMSConfiguration",
        apiVersion=string(),
        name=string(),
        cachesize=cache_size,
        endpoint=string(),
        timeout=pointer(duration()),
    )
    provider = struct(
        "v1.ProviderConfiguration",
        aesgcm=pointer(struct("v1.AESConfiguration", keys=keys)),
        aescbc=pointer(struct("v1.AESConfiguration", keys=keys)),
        secretbox=pointer(struct("v1.SecretboxConfiguration", keys=keys)),
        identity=pointer(struct("v1.IdentityConfiguration")),
        kms=pointer(kms),
    )
    return kind(
        KIND, resources=list_of(struct("v1.ResourceConfiguration", resources=strings(), providers=list_of(provider)))
    )
