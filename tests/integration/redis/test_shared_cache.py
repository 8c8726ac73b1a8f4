"""Token and access reviews shared through a real redis. Without redis everything continues to work."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from redis.asyncio import Redis

import support.redis
from integration.auth.test_authorization_webhook import JANE, PODS, reviewed
from support.kubeconfig import write_kubeconfig
from support.server import free_port
from support.webhook import WebhookServer, webhook_server
from tetrapod.auth.authorizers.chain import AuthorizerChain
from tetrapod.auth.authorizers.configuration import AuthorizationOptions, WebhookFlags, from_modes
from tetrapod.generic.authentication.interface import Authenticated
from tetrapod.generic.authentication.shared_cache import SharedCache
from tetrapod.generic.authentication.sharedtokens import SharedTokens
from tetrapod.generic.authentication.tokencache import CachedTokenAuthenticator
from tetrapod.generic.authentication.webhook import webhook_authenticator
from tetrapod.generic.authorization.interface import Attributes, AuthorizationResult, Decision
from tetrapod.generic.authorization.webhook import WebhookAuthorizer, WebhookOptions
from tetrapod.generic.proxy.pool import BackendPool
from tetrapod.generic.webhook.kubeconfig import read_kubeconfig
from tetrapod.machinery.user import SYSTEM_MASTERS, UserInfo

SECRET = b"what replicas share"
ALICE = Authenticated(UserInfo("alice", "u1", ("developers",), {"example.com/x": ("1", "2")}), ("api",))


class Reviews:
    def __init__(self) -> None:
        self.asked = 0

    async def authenticate_token(self, token: str, audiences: tuple[str, ...]) -> Authenticated | None:
        self.asked += 1
        return ALICE if token == "alice-token" else None


def bytes_client(url: str) -> Any:
    """Return a client whose responses are bytes, which its types do not say."""
    return Redis.from_url(url)


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[support.redis.Redis]:
    found = support.redis.Redis(tmp_path)
    found.start()
    yield found
    found.stop()


@asynccontextmanager
async def cache(
    url: str, *, secret: bytes = SECRET, timeout: float = 5, password: str = ""
) -> AsyncIterator[SharedCache]:
    """The cache of one replica."""
    made = SharedCache(url, password, secret=secret, timeout=timeout)
    try:
        yield made
    finally:
        await made.close()


@asynccontextmanager
async def replica(url: str, reviews: Reviews, **more: Any) -> AsyncIterator[CachedTokenAuthenticator]:
    """A replica with an empty local cache."""
    async with cache(url, **more) as shared:
        yield CachedTokenAuthenticator(reviews, 0, shared=SharedTokens(shared, "auth", 10))


async def test_a_second_replica_uses_reviews_of_the_first(redis: support.redis.Redis) -> None:
    url = redis.url
    first, second = Reviews(), Reviews()
    async with replica(url, first) as one, replica(url, second) as two:
        assert await one.authenticate_token("alice-token", ("api",)) == ALICE
        assert await two.authenticate_token("alice-token", ("api",)) == ALICE
        assert await two.authenticate_token("alice-token", ("other",)) == ALICE
    assert (first.asked, second.asked) == (1, 1)


async def test_reviews_of_another_replica_keep_their_expiry(redis: support.redis.Redis) -> None:
    """A revoked token must not be valid for twice the TTL because two caches held it one after the other."""
    url = redis.url
    reviews = Reviews()
    async with cache(url) as shared:
        await SharedTokens(shared, "auth", 3).put("alice-token", ("api",), ALICE)
        late = CachedTokenAuthenticator(reviews, 600, shared=SharedTokens(shared, "auth", 600))
        assert await late.authenticate_token("alice-token", ("api",)) == ALICE
        assert reviews.asked == 0
        async with asyncio.timeout(60):
            while not reviews.asked:
                await asyncio.sleep(0.05)
                await late.authenticate_token("alice-token", ("api",))
        found = await SharedTokens(shared, "auth", 5).get("alice-token", ("api",))  # its flags set a shorter TTL
        assert found is not None
        assert 0 < found[1] <= 5


async def test_a_token_that_is_rejected_is_not_remembered(redis: support.redis.Redis) -> None:
    url = redis.url
    reviews = Reviews()
    async with replica(url, reviews) as one:
        assert await one.authenticate_token("nobody", ()) is None
        assert await one.authenticate_token("nobody", ()) is None
    assert reviews.asked == 2


async def test_losing_redis_costs_speed_only(redis: support.redis.Redis) -> None:
    url = redis.url
    reviews = Reviews()
    async with replica(url, reviews, timeout=0.1) as one:
        assert await one.authenticate_token("alice-token", ()) == ALICE
        redis.stop()
        assert await one.authenticate_token("alice-token", ()) == ALICE
        assert await one.authenticate_token("alice-token", ()) == ALICE
    assert reviews.asked == 3


async def test_a_redis_that_hangs_is_waited_for_once(redis: support.redis.Redis) -> None:
    url = redis.url
    reviews = Reviews()
    async with replica(url, reviews, timeout=0.2) as one:
        assert await one.authenticate_token("alice-token", ()) == ALICE
        redis.hang()
        async with asyncio.timeout(5):  # redis is not used after the first failure: not 0.2 s each
            for _ in range(100):
                assert await one.authenticate_token("alice-token", ()) == ALICE
    assert reviews.asked >= 100


async def test_a_redis_that_was_never_there_is_not_missed() -> None:
    reviews = Reviews()
    async with replica(f"redis://127.0.0.1:{free_port()}/0", reviews) as one:
        assert await one.authenticate_token("alice-token", ()) == ALICE
    assert reviews.asked == 1


async def test_the_password_comes_from_a_file(redis: support.redis.Redis, tmp_path: Path) -> None:
    url = redis.url
    password = tmp_path / "password"
    password.write_text("wrong\n")
    administrator = bytes_client(url)
    await administrator.acl_setuser("default", enabled=True, passwords=["+right"], reset_passwords=True)
    first, second = Reviews(), Reviews()
    try:
        async with replica(url, first, password=str(password)) as rejected:
            assert await rejected.authenticate_token("alice-token", ("api",)) == ALICE  # as without redis
        password.write_text("right\n")
        for reviews in (first, second):
            async with replica(url, reviews, password=str(password)) as one:
                assert await one.authenticate_token("alice-token", ("api",)) == ALICE
    finally:
        await administrator.aclose()
    assert (first.asked, second.asked) == (2, 0)


async def test_forged_token_reviews_in_redis_are_rejected(redis: support.redis.Redis) -> None:
    """An attacker cannot write a valid entry: neither an invented one, nor that of another token or service, nor an
    expired one.
    """
    url = redis.url
    client = bytes_client(url)
    reviews = Reviews()
    try:
        async with replica(url, reviews) as one, cache(url) as ours, cache(url, secret=b"another service's") as strange:
            await one.authenticate_token("alice-token", ("api",))
            (key,) = await client.keys("*")
            genuine = await client.get(key)
            await one.authenticate_token("mallory-token", ("api",))
            await SharedTokens(ours, "auth", 10).put("mallory-token", ("api",), ALICE)
            (mallory,) = [found.decode() for found in await client.keys("*") if found != key]
            answer = {"user": {"username": "alice"}, "audiences": ["api"]}
            elsewhere = mallory.replace("token", "access", 1)
            sealed = (
                ours._seal.close(mallory, answer, -1),
                strange._seal.close(mallory, answer, 10),
                ours._seal.close(elsewhere, answer, 10),
            )
            reviews.asked = 0
            for forged in (genuine, *sealed, genuine[32:], b"", b"x" * 100):
                await client.set(mallory, forged)
                assert await one.authenticate_token("mallory-token", ("api",)) is None
            await client.set(key, genuine[:-1] + b" ")
            assert await one.authenticate_token("alice-token", ("api",)) == ALICE
            assert reviews.asked == 8
            assert not any(b"alice" in found for found in await client.keys("*"))
    finally:
        await client.aclose()


# --- webhooks, which auth calls


@pytest.fixture
def webhook() -> Iterator[WebhookServer]:
    with webhook_server() as made:
        yield made


@asynccontextmanager
async def authorizer(
    webhook: WebhookServer, tmp_path: Path, shared: SharedCache, **options: Any
) -> AsyncIterator[WebhookAuthorizer]:
    """A replica with an empty local cache."""
    pool = BackendPool()
    target = read_kubeconfig(str(write_kubeconfig(tmp_path / "kubeconfig", webhook, "/authorize")))
    yield WebhookAuthorizer(WebhookOptions(target, **{"name": "hook", **options}), pool, shared)
    await pool.close()


@pytest.mark.parametrize(("allowed", "decision"), [(True, Decision.ALLOW), (False, Decision.NO_OPINION)])
async def test_decisions_of_a_webhook_are_shared_by_replicas(
    redis: support.redis.Redis, webhook: WebhookServer, tmp_path: Path, allowed: bool, decision: Decision
) -> None:
    url = redis.url
    webhook.on("/authorize", lambda _: reviewed(allowed=allowed, reason="so it is"))
    async with cache(url) as first, cache(url) as second, cache(url, secret=b"another cluster's") as strange:
        for shared, asked in ((first, 1), (second, 1), (strange, 2)):
            async with authorizer(webhook, tmp_path, shared) as one:
                assert await one.authorize(PODS) == AuthorizationResult(decision, "so it is")
                assert len(webhook.seen) == asked
        async with authorizer(webhook, tmp_path, first, name="another") as one:  # sends its own review
            await one.authorize(PODS)
            await one.authorize(
                Attributes(JANE, "delete", namespace="ns", version="v1", resource="pods", resource_request=True)
            )
        assert len(webhook.seen) == 4
        async with authorizer(
            webhook, tmp_path, first, authorized_ttl=0, unauthorized_ttl=0
        ) as one:  # its flags disable caching
            await one.authorize(PODS)
        assert len(webhook.seen) == 5
    client = bytes_client(url)
    keys = await client.keys("*")
    assert all(key.startswith(b"tetrapod:access:") and b"jane" not in key for key in keys)
    limit = 300_000 if allowed else 30_000
    assert all([limit / 2 < await client.pttl(key) <= limit for key in keys])
    await client.aclose()


async def test_forged_access_reviews_in_redis_are_rejected(
    redis: support.redis.Redis, webhook: WebhookServer, tmp_path: Path
) -> None:
    url = redis.url
    client = bytes_client(url)
    webhook.on("/authorize", lambda asked: reviewed(allowed=asked["spec"]["user"] == "root"))
    async with cache(url) as ours, cache(url, secret=b"mallory's") as forger:
        async with authorizer(webhook, tmp_path, ours) as one:
            root = Attributes(
                UserInfo("root"), "list", namespace="ns", version="v1", resource="pods", resource_request=True
            )
            assert (await one.authorize(root)).decision is Decision.ALLOW
            (allowing,) = await client.keys("*")
            genuine = await client.get(allowing)
            await one.authorize(PODS)
            (denying,) = [found for found in await client.keys("*") if found != allowing]
        status = {"allowed": True}
        for forged in (
            genuine,
            forger._seal.close(denying.decode(), status, 300),
            ours._seal.close(denying.decode(), status, -1),
        ):
            await client.set(denying, forged)
            async with authorizer(webhook, tmp_path, ours) as one:
                assert (await one.authorize(PODS)).decision is Decision.NO_OPINION
    await client.aclose()


async def test_requests_of_system_masters_are_authorized_without_a_webhook(
    redis: support.redis.Redis, webhook: WebhookServer, tmp_path: Path
) -> None:
    url = redis.url
    kubeconfig = write_kubeconfig(tmp_path / "kubeconfig", webhook, "/authorize")
    options = AuthorizationOptions(from_modes(("Webhook",), WebhookFlags(str(kubeconfig), "v1", "5m", "30s")))
    pool = BackendPool()
    async with cache(url) as shared:
        chain = AuthorizerChain(options, [], {}, pool, shared)
        master = Attributes(
            UserInfo("m", groups=(SYSTEM_MASTERS,)), "delete", version="v1", resource="nodes", resource_request=True
        )
        assert (await chain.authorizer.authorize(master)).decision is Decision.ALLOW
    await pool.close()
    client = bytes_client(url)
    assert (webhook.seen, await client.keys("*")) == ([], [])
    await client.aclose()


async def test_all_replicas_share_the_token_reviews_of_a_webhook(
    redis: support.redis.Redis, webhook: WebhookServer, tmp_path: Path
) -> None:
    url = redis.url
    status = {"authenticated": True, "user": {"username": "jane"}}
    webhook.on(
        "/authenticate", lambda _: {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "status": status}
    )
    target = read_kubeconfig(str(write_kubeconfig(tmp_path / "kubeconfig", webhook, "/authenticate")))
    for _ in range(2):
        pool = BackendPool()
        async with cache(url) as shared:
            made = webhook_authenticator(target, pool, version="v1", ttl=60, audiences=("api",), shared=shared)
            found = await made.authenticate_token("t", ("api",))
            assert found is not None
            assert found.user.name == "jane"
        await pool.close()
    assert len(webhook.seen) == 1
