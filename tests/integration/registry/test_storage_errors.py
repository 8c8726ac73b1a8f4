"""Storage errors reach clients with upstream's messages, whichever verb raised them."""

from __future__ import annotations

import pytest

from integration.registry.conftest import MakeStore
from integration.registry.kinds import ConfigMaps, define, new
from tetrapod.generic.lifecycle import Unavailable
from tetrapod.generic.registry.context import Context
from tetrapod.generic.registry.errors import Translated, TranslatedRead
from tetrapod.generic.registry.store import Store
from tetrapod.generic.storage.backend import Backend, KeyValue
from tetrapod.generic.storage.cacher import CachingStorageFactory
from tetrapod.generic.storage.config import StorageConfig
from tetrapod.generic.storage.errors import (
    KeyExists,
    KeyNotFound,
    PreconditionFailed,
    TooLargeResourceVersion,
    TooOldResourceVersion,
)
from tetrapod.generic.storage.sqlite import SqliteBackend
from tetrapod.generic.storage.wrappers import ForwardingBackend
from tetrapod.machinery.gvk import GroupResource, Object
from tetrapod.machinery.status import StatusError

PODS = GroupResource("", "pods")


def status(error: Exception, action: str = "update") -> Object:
    with pytest.raises(StatusError) as rejection, TranslatedRead(PODS, "p", action, "/registry/pods/ns/p"):
        raise error
    return rejection.value.to_status()


def test_absence_existence_and_preconditions() -> None:
    assert status(KeyNotFound("ns/p"))["message"] == 'pods "p" not found'
    assert status(KeyExists("ns/p"))["reason"] == "AlreadyExists"
    message = status(PreconditionFailed("Precondition failed: UID …"))["message"]
    assert message == (
        'Operation cannot be fulfilled on pods "p": StorageError: invalid object, Code: 4, Key: /registry/pods/ns/p, '
        "ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID …"
    )


def test_the_error_of_an_expired_continue_token_has_a_new_token() -> None:
    answer = status(TooOldResourceVersion("The provided continue parameter is too old", "fresh"))
    assert (answer["code"], answer["reason"], answer["metadata"]) == (410, "Expired", {"continue": "fresh"})
    answer = status(TooOldResourceVersion("The resourceVersion for the provided list is too old."))
    assert (answer["message"], answer["metadata"]) == ("The resourceVersion for the provided list is too old.", {})


def test_a_version_of_the_future_is_a_timeout_that_names_the_cause() -> None:
    answer = status(TooLargeResourceVersion(900, 5))
    assert (answer["code"], answer["reason"]) == (504, "Timeout")
    assert answer["message"] == "Timeout: Too large resource version: 900, current: 5"
    cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
    assert answer["details"] == {"causes": [cause], "retryAfterSeconds": 1}


def test_a_store_that_does_not_answer_asks_to_try_again() -> None:
    answer = status(Unavailable("no leader"), "list")
    assert (answer["code"], answer["reason"], answer["details"]["retryAfterSeconds"]) == (500, "ServerTimeout", 2)
    assert answer["message"] == "The list operation against pods could not be completed at this time, please try again."


def test_status_errors_and_unexpected_errors_are_raised_unchanged() -> None:
    rejection = StatusError(418, "Teapot", "short and stout")
    with pytest.raises(StatusError) as raised, Translated(PODS, "p", "create"):
        raise rejection
    assert raised.value is rejection
    with pytest.raises(ValueError, match="a bug"), Translated(PODS, "p", "create"):
        raise ValueError("a bug")


class Outage(ForwardingBackend):
    """A store that accepts writes, but whose reads of single keys get no answer."""

    def __init__(self, inner: Backend) -> None:
        super().__init__(inner)
        self.range, self.put_if, self.delete_if, self.watch = inner.range, inner.put_if, inner.delete_if, inner.watch

    async def close(self) -> None:
        """The fixture closes the inner backend."""

    async def get(self, key: str) -> KeyValue | None:
        raise Unavailable("no leader")


@pytest.mark.parametrize("existing", [False, True])
async def test_an_outage_while_a_name_is_looked_up_is_a_status(
    backend: SqliteBackend, make_store: MakeStore, existing: bool
) -> None:
    """A create looks up a generated name of a large object, and an existing name that it could not use."""
    obj = new("ConfigMap", "a") if existing else new("ConfigMap", generateName="a-")
    if existing:
        await make_store("ConfigMap", "configmaps", ConfigMaps()).create(Context(namespace="ns"), new("ConfigMap", "a"))
    factory = CachingStorageFactory(Outage(backend))
    definition = define("ConfigMap", "configmaps", ConfigMaps())
    store = Store(definition, factory.resource(StorageConfig(definition.storage_prefix, "v1", "ConfigMap")))
    try:
        with pytest.raises(StatusError) as rejection:
            await store.create(Context(namespace="ns", large=True), obj)
    finally:
        await factory.close()
    assert rejection.value.reason == ("AlreadyExists" if existing else "ServerTimeout")
