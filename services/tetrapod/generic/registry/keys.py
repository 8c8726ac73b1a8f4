"""Where an object lies below its resource's prefix: `namespace/name`, or `name` (upstream: NamespaceKeyFunc, NoNamespaceKeyFunc)."""

from __future__ import annotations

from tetrapod.machinery.field import go_quote
from tetrapod.machinery.names import is_path_segment_name
from tetrapod.machinery.status import StatusError, bad_request


def object_key(namespaced: bool, namespace: str, name: str) -> str:
    """
    Raises:
        StatusError: 400 for names that no path can have.
    """
    if namespaced and not namespace:
        raise bad_request("Namespace parameter required.")
    if not name:
        raise bad_request("Name parameter required.")
    if "/" in name or "%" in name or name in (".", ".."):
        raise _bad_name(name)
    return f"{namespace}/{name}" if namespaced else name


def root_key(namespaced: bool, namespace: str) -> str:
    return f"{namespace}/" if namespaced and namespace else ""


def _bad_name(name: str) -> StatusError:
    return bad_request(f"Name parameter invalid: {go_quote(name)}: {';'.join(is_path_segment_name(name))}")
