"""Tests of a service that cannot reach the auth service: it returns a retriable 503, not a 401 or 403."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from tetrapod.generic.authentication.delegating import TokenReviewer
from tetrapod.generic.authentication.interface import InvalidToken
from tetrapod.generic.authorization.delegating import DelegatingAuthorizer, SubjectAccessReviewer
from tetrapod.generic.authorization.interface import Attributes
from tetrapod.generic.client.token_requests import RemoteTokenRequestRest
from tetrapod.generic.lifecycle import Unavailable
from tetrapod.generic.registry.context import Context
from tetrapod.machinery.gvk import GroupResource
from tetrapod.machinery.status import StatusError, forbidden, service_unavailable, unauthorized
from tetrapod.machinery.user import UserInfo


class Answering:
    """A client of an auth service that sends one answer to every request."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    async def create(self, *args: Any, **query: Any) -> Any:
        return self.answer

    async def raw(self, *args: Any) -> Any:
        return 200, orjson.dumps(self.answer)


class Away:
    """A client of the auth service and a source of rules, of which every call raises `error`."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    async def create(self, *args: Any, **query: Any) -> Any:
        raise self.error

    async def raw(self, *args: Any) -> Any:
        raise self.error

    async def get(self, user: UserInfo) -> Any:
        raise self.error


def may_be_repeated(error: StatusError) -> bool:
    return (error.code, error.retry_after) == (503, 1)


AWAY = [Unavailable("dial tcp: connect: connection refused"), service_unavailable("apiserver is shutting down")]


@pytest.mark.parametrize("why", [*AWAY, unauthorized()])
async def test_an_unreviewed_token_is_not_called_invalid(why: Exception) -> None:
    with pytest.raises(StatusError) as caught:
        await TokenReviewer(Away(why)).authenticate_token("t", ())  # type: ignore[arg-type]
    assert may_be_repeated(caught.value)


async def test_without_permission_for_reviews_no_token_is_accepted() -> None:
    rejection = forbidden(GroupResource("authentication.k8s.io", "tokenreviews"), "", "no")
    with pytest.raises(InvalidToken):
        await TokenReviewer(Away(rejection)).authenticate_token("t", ())  # type: ignore[arg-type]


@pytest.mark.parametrize("why", AWAY)
async def test_an_unavailable_authorizer_is_not_a_403(why: Exception) -> None:
    away = Away(why)
    authorizer = DelegatingAuthorizer(away, SubjectAccessReviewer(away))  # type: ignore[arg-type]
    with pytest.raises(StatusError) as caught:
        await authorizer.authorize(Attributes(UserInfo("eve"), "get", path="/x"))
    assert may_be_repeated(caught.value)


async def test_a_token_request_without_a_signer_is_retriable() -> None:
    with pytest.raises(StatusError) as caught:
        await RemoteTokenRequestRest(Away(AWAY[0])).create(Context(), "default", {"spec": {}}, None, {})  # type: ignore[arg-type]
    assert may_be_repeated(caught.value)


@pytest.mark.parametrize("answer", [{}, [], {"object": None}, {"warnings": []}])
async def test_a_malformed_answer_to_a_token_request_is_retriable(answer: Any) -> None:
    with pytest.raises(StatusError) as caught:
        await RemoteTokenRequestRest(Answering(answer)).create(Context(), "default", {"spec": {}}, None, {})  # type: ignore[arg-type]
    assert may_be_repeated(caught.value)


@pytest.mark.parametrize("notes", ["{", "[]", '"x"'])
async def test_a_review_with_malformed_annotations_is_retriable(notes: str) -> None:
    review = {
        "metadata": {"annotations": {"tetrapod.dev/notes": notes}},
        "status": {"authenticated": True, "user": {"username": "eve"}},
    }
    with pytest.raises(StatusError) as caught:
        await TokenReviewer(Answering(review)).authenticate_token("t", ())  # type: ignore[arg-type]
    assert may_be_repeated(caught.value)
