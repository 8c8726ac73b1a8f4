"""Conversion of the objects of a stock kube-apiserver to Tetrapod's stored form: protobuf and CBOR become JSON.

Upstream: --storage-media-type; staging/src/k8s.io/apimachinery/pkg/runtime/serializer/protobuf
"""

from __future__ import annotations

from typing import Final

import orjson

from tetrapod.generic.storage.backup import definitions
from tetrapod.generic.storage.backup.contents import BackupError, Contents, Item, first_lines
from tetrapod.generic.storage.encoding import encode
from tetrapod.generic.storage.unreadable import ENCRYPTED
from tetrapod.machinery import cbor
from tetrapod.machinery.gvk import GroupVersion, GroupVersionKind, Object
from tetrapod.machinery.protobuf import decoding
from tetrapod.machinery.schema import decode as typed
from tetrapod.machinery.serializer.errors import DecodeError
from tetrapod.machinery.types import schema_for

_DEFINITIONS: Final = "apiextensions.k8s.io/customresourcedefinitions/"
_NOBODY: Final = GroupVersionKind("", "", "")
_NOT_COPIED: Final = ("masterleases/", "peerserverleases/", "ranges/")
"""The beginnings of keys that are not copied: Leases of API servers, because other servers run afterwards, and node
port allocations, which are rebuilt from Services at startup.
"""


def converted(contents: Contents, *, keep_encrypted: bool) -> Contents:
    """Return the contents in Tetrapod's stored form, without keys that only API servers use.

    Encrypted values are not changed.

    Args:
        keep_encrypted: accept encrypted values instead of raising an error.

    Raises:
        BackupError: some values are neither JSON, CBOR nor protobuf of a known kind, or are encrypted; the text lists
            their keys.
    """
    items: list[Item] = []
    errors: list[str] = []
    encrypted: list[str] = []
    for item in contents.items:
        if item.key.startswith(_NOT_COPIED):
            continue
        if item.value.startswith(ENCRYPTED):
            encrypted.append(item.key)
            items.append(item)
        elif item.value.startswith(decoding.MAGIC):
            try:
                items.append(item._replace(value=_json(item.value)))
            except (DecodeError, ValueError) as error:
                errors.append(f"{item.key}: {error}")
        elif item.value.startswith(cbor.MAGIC):
            try:
                items.append(item._replace(value=_json_of_cbor(item.value)))
            except (DecodeError, AttributeError) as error:
                errors.append(f"{item.key}: {error}")
        elif item.value.lstrip()[:1] == b"{":
            items.append(item._replace(value=_current(item)))
        else:
            errors.append(f"{item.key}: neither JSON, protobuf nor CBOR")
    if errors:
        raise BackupError(f"{len(errors)} values cannot be read, nothing was moved:\n{first_lines(errors)}")
    if encrypted and not keep_encrypted:
        raise BackupError(
            f"{len(encrypted)} values are encrypted:\n"
            f"{first_lines(encrypted)}\n"
            "Say by --from-encryption-provider-config how to decrypt them, or move them as they are with "
            "--keep-encrypted: then the server needs the same --encryption-provider-config"
        )
    return contents.with_items(items)


def _json(value: bytes) -> bytes:
    obj: Object = decoding.decode(value, _NOBODY)
    gvk = GroupVersion.parse(obj.get("apiVersion", "")).with_kind(obj.get("kind", ""))
    unknown = f"no kind {gvk.kind} in {gvk.api_version} is known"
    if set(obj) <= {"apiVersion", "kind"}:
        raise ValueError(unknown)
    try:
        schema = schema_for(gvk)
    except KeyError:
        raise ValueError(unknown) from None
    typed.decode(schema, obj)
    return encode(obj, gvk.api_version, gvk.kind)


def _json_of_cbor(value: bytes) -> bytes:
    obj: Object = cbor.decode(value)
    return encode(obj, obj.get("apiVersion", ""), obj.get("kind", ""))


def _current(item: Item) -> bytes:
    """Return a CustomResourceDefinition in the version that Tetrapod stores (v1), and any other object unchanged."""
    if not item.key.startswith(_DEFINITIONS) or definitions.VERSION.encode() not in item.value:
        return item.value
    obj: Object = orjson.loads(item.value)
    if obj.get("apiVersion") != definitions.VERSION:
        return item.value
    obj = definitions.to_v1(obj)
    return encode(obj, obj["apiVersion"], obj["kind"])
