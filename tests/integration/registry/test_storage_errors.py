"""Storage errors reach clients with upstream's messages, whichever verb raised them."""

from __future__ import annotations

import pytest

from tetrapod.generic.lifecycle import Unavailable
from tetrapod.generic.registry.errors import Translated, TranslatedRead
from tetrapod.generic.storage.interface import (
    KeyExists,
    KeyNotFound,
    PreconditionFailed,
    TooLargeResourceVersion,
    TooOldResourceVersion,
)
from tetrapod.machinery.gvk import GroupResource, Object
from tetrapod.machinery.status import StatusError

PODS = GroupResource("", "pods")


def status(error: Exception, action: str = "update") -> Object:
    with pytest.raises(StatusError) as refusal, TranslatedRead(PODS, "p", action, "/registry/pods/ns/p"):
        raise error
    return refusal.value.to_status()


def test_absence_existence_and_preconditions() -> None:
    assert status(KeyNotFound("ns/p"))["message"] == 'pods "p" not found'
    assert status(KeyExists("ns/p"))["reason"] == "AlreadyExists"
    message = status(PreconditionFailed("Precondition failed: UID …"))["message"]
    assert message == (
        'Operation cannot be fulfilled on pods "p": StorageError: invalid object, Code: 4, Key: /registry/pods/ns/p, '
        "ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID …"
    )


def test_an_expired_token_brings_one_that_goes_on() -> None:
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


def test_rejections_pass_and_faults_stay_faults() -> None:
    refusal = StatusError(418, "Teapot", "short and stout")
    with pytest.raises(StatusError) as raised, Translated(PODS, "p", "create"):
        raise refusal
    assert raised.value is refusal
    with pytest.raises(ValueError, match="a bug"), Translated(PODS, "p", "create"):
        raise ValueError("a bug")
