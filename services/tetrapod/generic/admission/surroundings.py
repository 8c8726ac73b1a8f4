"""`Surroundings`: what admission plugins stand on, in whichever service they are."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from tetrapod.generic.admission.configuration import NOTHING, PluginConfiguration
from tetrapod.generic.authorization.interface import Authorizer
from tetrapod.generic.client.interface import Client
from tetrapod.generic.storage.interface import StorageFactory
from tetrapod.generic.webhook.client import WebhookClient

Background = Callable[[str, Coroutine[Any, Any, None]], object]
"""Runs something until the server stops (`Lifecycle.background`)."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """`client` is the server's own, through the front door; `webhooks` calls those outside."""

    storages: StorageFactory
    authorizer: Authorizer
    client: Client
    background: Background
    webhooks: WebhookClient
    break_glass: bool = False
    toleration_seconds: tuple[int, int] = (300, 300)
    """--default-not-ready-toleration-seconds, --default-unreachable-toleration-seconds"""
    configuration: PluginConfiguration = NOTHING
    """--admission-control-config-file"""
