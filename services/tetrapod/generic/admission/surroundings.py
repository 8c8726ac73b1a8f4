"""`Surroundings`: what admission plugins stand on, in whichever service they are."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from tetrapod.generic.authorization.interface import Authorizer
from tetrapod.generic.client.interface import Client
from tetrapod.generic.storage.interface import StorageFactory

Background = Callable[[str, Coroutine[Any, Any, None]], object]
"""Runs something until the server stops (`Lifecycle.background`)."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """`client` is the server's own, through the front door."""

    storages: StorageFactory
    authorizer: Authorizer
    client: Client
    background: Background
