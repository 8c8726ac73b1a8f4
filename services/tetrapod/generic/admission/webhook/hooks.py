"""`Hook`, one configured webhook, and `Hooks`, the current webhooks of one type.

Upstream: staging/src/k8s.io/apiserver/pkg/admission/plugin/webhook/accessors.go,
pkg/admission/configuration/*_webhook_manager.go
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from functools import cached_property
from typing import Any, Final

from tetrapod.generic.admission.matching import ParsedSelector, Rule
from tetrapod.generic.admission.plugin_dependencies import Background
from tetrapod.generic.registry.converted_objects import ConvertedObjects
from tetrapod.generic.storage.config import StorageConfig
from tetrapod.generic.storage.entry import Entry
from tetrapod.generic.storage.interface import StorageFactory
from tetrapod.generic.webhook.client_config import ClientConfig, client_config
from tetrapod.machinery.gvk import Object

_API_VERSION: Final = "admissionregistration.k8s.io/v1"
MUTATING: Final = StorageConfig(
    "mutatingwebhookconfigurations", _API_VERSION, "MutatingWebhookConfiguration", namespaced=False
)
VALIDATING: Final = StorageConfig(
    "validatingwebhookconfigurations", _API_VERSION, "ValidatingWebhookConfiguration", namespaced=False
)
_READY_SECONDS: Final = 10.0
"""Seconds that the first requests wait for the configurations (upstream: admission.timeToWaitForReady)."""


class Hook:
    """One webhook of a configuration. Its attributes are the parsed fields of `declared`.

    Expensive parts (`client`, `compiled`) are created when a request first needs them.

    Args:
        configuration: the name of the configuration object.
        uid: distinguishes the webhook from others with its name.
        declared: the entry of `webhooks`, with defaults.
    """

    def __init__(self, configuration: str, uid: str, declared: Object) -> None:
        self.configuration, self.uid = configuration, uid
        self._declared = declared
        self.name: str = declared.get("name") or ""
        self.rules = [Rule.from_object(rule) for rule in declared.get("rules") or ()]
        self.namespace_selector = ParsedSelector(declared.get("namespaceSelector"))
        self.object_selector = ParsedSelector(declared.get("objectSelector"))
        self.equivalent = declared.get("matchPolicy") == "Equivalent"
        self.ignores_failure = declared.get("failurePolicy") == "Ignore"
        self.side_effects: str | None = declared.get("sideEffects")
        self.timeout: int | None = declared.get("timeoutSeconds")
        self.review_versions: Sequence[str] = declared.get("admissionReviewVersions") or ()
        self.reinvocable = declared.get("reinvocationPolicy") == "IfNeeded"
        self.match_conditions: Sequence[Object] = declared.get("matchConditions") or ()
        self.compiled: Any = None
        """The compiled match conditions."""

    @cached_property
    def client(self) -> ClientConfig:
        """The address and CA of the webhook.

        Raises:
            Unusable: the clientConfig is invalid.
        """
        return client_config(self._declared.get("clientConfig") or {})


def hooks_of(obj: Object, prefix: str = "") -> list[Hook]:
    """Return the webhooks of a configuration, in its order.

    Args:
        obj: the configuration with defaults. The webhooks keep references to its parts.
        prefix: a text at the beginning of their uids. It distinguishes webhooks in manifest files from those of the
            API.
    """
    name, occurrences, hooks = obj["metadata"]["name"], Counter[str](), []
    for declared in obj.get("webhooks") or ():
        hook = declared.get("name") or ""
        hooks.append(Hook(name, f"{prefix}{name}/{hook}/{occurrences[hook]}", declared))
        occurrences[hook] += 1
    return hooks


def _hooks_of_entry(entry: Entry) -> list[Hook]:
    return hooks_of(entry.object())


class Hooks:
    """All webhooks of one type (mutating or validating), kept current by a watch from the first call of `ready` on.

    Args:
        storages: provides the storage of the webhook configurations.
        config: the storage configuration of the webhook configurations.
        background: starts a coroutine that runs until the server stops.
    """

    def __init__(self, storages: StorageFactory, config: StorageConfig, background: Background) -> None:
        self._hooks: ConvertedObjects[list[Hook]] = ConvertedObjects(storages.resource(config), _hooks_of_entry)
        self._hooks.changed.append(self._changed)
        self._name = config.prefix
        self._background = background
        self._started = False
        self._all: list[Hook] | None = None

    async def ready(self) -> bool:
        """Start the watch of the webhook configurations, if necessary, and wait up to ten seconds until they are read.

        Return False if that takes longer, else True.
        """
        if not self._started:
            self._started = True
            self._background(f"informer/{self._name}", self._hooks.run())
        if not self._hooks.synced.is_set():
            try:
                async with asyncio.timeout(_READY_SECONDS):
                    await self._hooks.synced.wait()
            except TimeoutError:
                return False
        return True

    @property
    def is_empty(self) -> bool:
        """Whether the configurations have been read and contain no webhooks, so that the plugin need not be called."""
        return self._hooks.synced.is_set() and not self.all

    @property
    def all(self) -> list[Hook]:
        """The webhooks, by the names of their configurations, in the order of each configuration.

        It is the same list until a configuration changes, and must not be modified.
        """
        if self._all is None:
            self._all = [hook for hooks in self._hooks.items for hook in hooks]
        return self._all

    def _changed(self) -> None:
        self._all = None
