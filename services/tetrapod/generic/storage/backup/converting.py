"""Conversion of the objects of a stock kube-apiserver to Tetrapod's stored form: protobuf, CBOR and YAML become JSON.

Upstream: --storage-media-type; staging/src/k8s.io/apimachinery/pkg/runtime/serializer/protobuf
"""

from __future__ import annotations

from typing import Final

from tetrapod.generic.storage.backup.contents import BackupError, Contents, Item, first_lines
from tetrapod.generic.storage.encoding import CorruptObject, as_json, check_json, is_yaml
from tetrapod.generic.storage.unreadable import ENCRYPTED

_NOT_COPIED: Final = ("masterleases/", "peerserverleases/", "ranges/")
"""The beginnings of keys that are not copied: Leases of API servers, because other servers run afterwards, and node
port allocations, which are rebuilt from Services at startup.
"""


def converted(contents: Contents, *, keep_encrypted: bool) -> Contents:
    """Return the contents with each object as JSON, which Tetrapod reads for every resource.

    Encrypted values are not changed. The keys of running API servers (endpoint Leases) and of node port allocations are
    left out.

    Args:
        keep_encrypted: accept encrypted values instead of raising an error.

    Raises:
        BackupError: some values are neither JSON, CBOR, YAML nor protobuf of a known kind, or are encrypted; the text
            lists their keys.
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
        else:
            try:
                items.append(item._replace(value=_in_json(item.value)))
            except (ValueError, AttributeError, TypeError, CorruptObject) as error:
                reason = "neither JSON, protobuf, CBOR nor YAML" if is_yaml(item.value) else error
                errors.append(f"{item.key}: {reason}")
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


def _in_json(value: bytes) -> bytes:
    """Return a stored value as JSON, and one in JSON as it is.

    Raises:
        ValueError, AttributeError, TypeError, CorruptObject: the value cannot be decoded.
    """
    text = value.lstrip()
    if not text.startswith(b"{"):
        return as_json(value)
    check_json(text)
    return value
