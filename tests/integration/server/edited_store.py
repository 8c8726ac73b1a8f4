"""A running server whose stored objects a test edits, for rules that concern objects from before the rule."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

from support.etcd import Etcd, running_etcd
from support.forms import serving_over
from support.https_client import HttpsClient
from support.service_accounts import ensure_service_account
from tetrapod.machinery.gvk import Object

JSON: Final = "--storage-media-type=application/json"


class Setting(NamedTuple):
    """A running server and its store."""

    client: HttpsClient
    etcd: Etcd

    def replace(self, path: str, key: str, change: Object) -> None:
        """Change the value of an object in the store as a merge patch would, and wait until the server has it."""
        stored = json.loads(self.etcd.value(key))
        marked = {"metadata": {"annotations": {"marked": ""}}}
        value = json.dumps(merged(merged(stored, change), marked)).encode()
        self.etcd.put(key, value)
        self.client.until(lambda reply: "marked" in reply.body["metadata"].get("annotations", {}), "GET", path)


def merged(value: Any, change: Any) -> Any:
    if not isinstance(value, dict) or not isinstance(change, dict):
        return change
    return {**value, **{key: merged(value.get(key), part) for key, part in change.items()}}


@contextmanager
def serving(directory: Path, form: str, *flags: str) -> Iterator[Setting]:
    with (
        running_etcd(directory / "etcd") as etcd,
        serving_over(etcd, form, directory / "server", JSON, *flags) as client,
    ):
        ensure_service_account(client)
        yield Setting(client, etcd)
