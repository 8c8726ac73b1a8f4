"""Token reviews by a real webhook over TLS: its requests, the use of its responses, and how long they are cached."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from support.kubeconfig import write_kubeconfig
from support.webhook import Answer, WebhookServer, webhook_server
from tetrapod.generic.authentication.interface import InvalidToken, TokenAuthenticator
from tetrapod.generic.authentication.webhook import webhook_authenticator
from tetrapod.generic.proxy.pool import BackendPool
from tetrapod.generic.webhook.kubeconfig import read_kubeconfig
from tetrapod.generic.webhook.review_client import Backoff
from tetrapod.machinery.user import UserInfo

API = ("api",)


@pytest.fixture
def server() -> Iterator[WebhookServer]:
    with webhook_server() as made:
        yield made


@asynccontextmanager
async def authenticator(
    server: WebhookServer, tmp_path: Path, version: str = "v1", ttl: float = 60.0, **user: Any
) -> AsyncIterator[TokenAuthenticator]:
    pool = BackendPool()
    target = read_kubeconfig(str(write_kubeconfig(tmp_path / "kubeconfig", server, "/authenticate", **user)))
    yield webhook_authenticator(target, pool, version=version, ttl=ttl, audiences=API, backoff=Backoff(initial=0.01))
    await pool.close()


def reviewed(version: str = "v1", **status: Any) -> dict[str, Any]:
    return {"apiVersion": f"authentication.k8s.io/{version}", "kind": "TokenReview", "status": status}


JANE = {"username": "jane", "uid": "1", "groups": ["a"], "extra": {"k": ["v"]}}


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
async def test_a_reviewed_token_authenticates_its_user(server: WebhookServer, tmp_path: Path, version: str) -> None:
    server.on("/authenticate", lambda _: reviewed(version, authenticated=True, user=JANE))
    async with authenticator(server, tmp_path, version, token="secret") as made:
        found = await made.authenticate_token("t1", API)
    assert found is not None
    assert (found.user, found.audiences) == (UserInfo("jane", "1", ("a",), {"k": ("v",)}), API)
    path, headers, body = server.seen[0]
    assert path == "POST /authenticate?timeout=30s"
    assert headers["authorization"] == "Bearer secret"
    assert body == {
        "kind": "TokenReview",
        "apiVersion": f"authentication.k8s.io/{version}",
        "metadata": {},
        "spec": {"token": "t1", "audiences": ["api"]},
        "status": {"user": {}},
    }


async def test_audiences_of_the_response_are_checked(server: WebhookServer, tmp_path: Path) -> None:
    async with authenticator(server, tmp_path, ttl=0) as made:
        server.on("/authenticate", lambda _: reviewed(authenticated=True, user=JANE, audiences=["other"]))
        assert await made.authenticate_token("t", API) is None
        assert (await made.authenticate_token("t", ("other", "api"))).audiences == ("other",)  # type: ignore[union-attr]


async def test_accepted_audiences_are_in_the_order_of_the_response(server: WebhookServer, tmp_path: Path) -> None:
    server.on("/authenticate", lambda _: reviewed(authenticated=True, user=JANE, audiences=["c", "b", "a"]))
    async with authenticator(server, tmp_path) as made:
        found = await made.authenticate_token("t", ("a", "c"))
    assert found is not None
    assert found.audiences == ("c", "a")


async def test_responses_are_cached_and_errors_are_not(server: WebhookServer, tmp_path: Path) -> None:
    answers: dict[str, Any] = {
        "good": reviewed(authenticated=True, user=JANE),
        "bad": reviewed(authenticated=False),
        "worse": reviewed(authenticated=False, error="who is that"),
    }
    server.on("/authenticate", lambda review: answers[review["spec"]["token"]])
    async with authenticator(server, tmp_path) as made:
        for _ in range(3):
            assert await made.authenticate_token("good", API)
            assert await made.authenticate_token("bad", API) is None
            with pytest.raises(InvalidToken, match="who is that"):
                await made.authenticate_token("worse", API)
        assert await made.authenticate_token("good", ("api", "more"))  # another token
    asked = [body["spec"]["token"] for _, _, body in server.seen]
    assert {token: asked.count(token) for token in answers} == {"good": 2, "bad": 1, "worse": 3}


async def test_concurrent_reviews_of_a_token_are_one_request(server: WebhookServer, tmp_path: Path) -> None:
    server.on("/authenticate", lambda _: reviewed(authenticated=True, user=JANE))
    async with authenticator(server, tmp_path) as made:
        found = await asyncio.gather(*(made.authenticate_token("t", API) for _ in range(20)))
    assert all(found)
    assert len(server.seen) == 1


@pytest.mark.parametrize(
    ("answer", "tries", "text"),
    [
        (
            Answer(500, b"boom", {"content-type": "text/plain"}),
            5,
            'an error on the server ("boom") has prevented the request from succeeding',
        ),
        (Answer(429, b""), 5, "the server has received too many requests and has asked us to try again later"),
        (Answer(503, b""), 1, "the server is currently unable to handle the request"),
        (Answer(403, b"no", {"content-type": "text/plain"}), 1, "no"),
        (Answer(200, b"garbage"), 1, "couldn't get version/kind"),
        (Answer(200, b'{"kind":"Pod","apiVersion":"v1"}'), 1, 'no kind "Pod" is registered for version "v1"'),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nshort", 1, "unexpected EOF"),
    ],
)
async def test_a_failing_webhook_authenticates_no_one(
    server: WebhookServer, tmp_path: Path, answer: Any, tries: int, text: str
) -> None:
    server.on("/authenticate", lambda _: answer)
    async with authenticator(server, tmp_path) as made:
        with pytest.raises(InvalidToken) as rejected:
            await made.authenticate_token("t", API)
    assert text in str(rejected.value)
    assert len(server.seen) == tries


async def test_a_recovered_webhook_is_called_again(server: WebhookServer, tmp_path: Path) -> None:
    def answer(_: Any) -> Any:
        return Answer(500, b"") if len(server.seen) < 3 else reviewed(authenticated=True, user=JANE)

    server.on("/authenticate", answer)
    async with authenticator(server, tmp_path) as made:
        assert await made.authenticate_token("t", API)
    assert len(server.seen) == 3


async def test_a_webhook_with_a_certificate_of_another_ca_is_not_called(server: WebhookServer, tmp_path: Path) -> None:
    with webhook_server() as stranger:
        path = write_kubeconfig(tmp_path / "kubeconfig", server, "/authenticate")
        path.write_text(path.read_text().replace(server.url, stranger.url))
        pool = BackendPool()
        made = webhook_authenticator(read_kubeconfig(str(path)), pool, version="v1", ttl=1, audiences=API)
        with pytest.raises(InvalidToken, match="certificate signed by unknown authority"):
            await made.authenticate_token("t", API)
        await pool.close()
        assert stranger.seen == []
