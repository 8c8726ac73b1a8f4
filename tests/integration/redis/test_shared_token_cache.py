"""Token reviews shared through a real redis; without it everything goes on."""

from __future__ import annotations

import asyncio
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator

import pytest
from redis.asyncio import Redis

from support.server import free_port
from tetrapod.generic.authentication.interface import Authenticated
from tetrapod.generic.authentication.sharedcache import SharedTokenAuthenticator
from tetrapod.generic.authentication.user import UserInfo

SECRET = b"what replicas share"
ALICE = Authenticated(UserInfo("alice", "u1", ("developers",), {"example.com/x": ("1", "2")}), ("api",))


class Reviews:
    def __init__(self) -> None:
        self.asked = 0

    async def authenticate_token(self, token: str, audiences: tuple[str, ...]) -> Authenticated | None:
        self.asked += 1
        return ALICE if token == "alice-token" else None


@pytest.fixture
def redis(tmp_path) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    binary = shutil.which("redis-server")
    assert binary, "redis-server is installed by tools/prepare.sh"
    port = free_port()
    process = subprocess.Popen([binary, "--port", str(port), "--save", "", "--dir", str(tmp_path)], stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        with socket.socket() as s:
            if s.connect_ex(("127.0.0.1", port)) == 0:
                break
    yield f"redis://127.0.0.1:{port}/0", process
    process.kill()
    process.wait()


async def test_a_second_replica_finds_what_the_first_was_told(redis) -> None:
    url, _ = redis
    first, second = Reviews(), Reviews()
    one, two = (SharedTokenAuthenticator(reviews, url, secret=SECRET, patience=5) for reviews in (first, second))
    try:
        assert await one.authenticate_token("alice-token", ("api",)) == ALICE
        assert await two.authenticate_token("alice-token", ("api",)) == ALICE
        assert await two.authenticate_token("alice-token", ("other",)) == ALICE
    finally:
        await one.close()
        await two.close()
    assert (first.asked, second.asked) == (1, 1)


async def test_a_token_that_is_refused_is_not_remembered(redis) -> None:
    url, _ = redis
    reviews = Reviews()
    shared = SharedTokenAuthenticator(reviews, url, secret=SECRET)
    try:
        assert await shared.authenticate_token("nobody", ()) is None
        assert await shared.authenticate_token("nobody", ()) is None
    finally:
        await shared.close()
    assert reviews.asked == 2


async def test_losing_redis_costs_speed_only(redis) -> None:
    url, process = redis
    reviews = Reviews()
    shared = SharedTokenAuthenticator(reviews, url, secret=SECRET)
    try:
        assert await shared.authenticate_token("alice-token", ()) == ALICE
        process.kill()
        process.wait()
        assert await shared.authenticate_token("alice-token", ()) == ALICE
        assert await shared.authenticate_token("alice-token", ()) == ALICE
    finally:
        await shared.close()
    assert reviews.asked == 3


async def test_a_redis_that_hangs_is_waited_for_once(redis) -> None:
    url, process = redis
    reviews = Reviews()
    shared = SharedTokenAuthenticator(reviews, url, secret=SECRET, patience=0.2)
    assert await shared.authenticate_token("alice-token", ()) == ALICE
    process.send_signal(signal.SIGSTOP)
    try:
        async with asyncio.timeout(5):  # left alone after the first time: not 0.2 s each
            for _ in range(100):
                assert await shared.authenticate_token("alice-token", ()) == ALICE
            await shared.close()
    finally:
        process.send_signal(signal.SIGCONT)
    assert reviews.asked >= 100


async def test_a_redis_that_was_never_there_is_not_missed() -> None:
    reviews = Reviews()
    shared = SharedTokenAuthenticator(reviews, f"redis://127.0.0.1:{free_port()}/0", secret=SECRET)
    assert await shared.authenticate_token("alice-token", ()) == ALICE
    await shared.close()
    assert reviews.asked == 1


async def test_the_password_comes_from_a_file(redis, tmp_path) -> None:
    url, _ = redis
    password = tmp_path / "password"
    password.write_text("wrong\n")
    administrator = Redis.from_url(url)
    await administrator.acl_setuser("default", enabled=True, passwords=["+right"], reset_passwords=True)
    first, second = Reviews(), Reviews()
    try:
        refused = SharedTokenAuthenticator(first, url, str(password), secret=SECRET, patience=5)
        assert await refused.authenticate_token("alice-token", ("api",)) == ALICE  # as without redis
        await refused.close()
        password.write_text("right\n")
        for reviews in (first, second):
            shared = SharedTokenAuthenticator(reviews, url, str(password), secret=SECRET, patience=5)
            assert await shared.authenticate_token("alice-token", ("api",)) == ALICE
            await shared.close()
    finally:
        await administrator.aclose()
    assert (first.asked, second.asked) == (2, 0)


async def test_who_writes_to_redis_cannot_say_who_a_token_is(redis) -> None:
    """Neither by an entry of their own, nor by another token's, nor by one of another service, nor by one that has ended."""
    url, _ = redis
    client = Redis.from_url(url)
    reviews = Reviews()
    shared = SharedTokenAuthenticator(reviews, url, secret=SECRET, patience=5)
    stranger = SharedTokenAuthenticator(reviews, url, secret=b"another service's", patience=5)
    try:
        await shared.authenticate_token("alice-token", ("api",))
        (key,) = await client.keys("*")
        genuine = await client.get(key)
        mallory = shared._seal.key("mallory-token", ("api",))
        ended = SharedTokenAuthenticator(reviews, url, secret=SECRET, seconds=-1)._seal.close(mallory, ALICE)
        for forged in (genuine, ended, stranger._seal.close(mallory, ALICE), genuine[32:], b"", b"x" * 100):
            await client.set(mallory, forged)
            assert await shared.authenticate_token("mallory-token", ("api",)) is None
        await client.set(key, genuine[:-1] + b" ")
        assert await shared.authenticate_token("alice-token", ("api",)) == ALICE
        assert reviews.asked == 8
        assert not any(b"alice" in (found if isinstance(found, bytes) else b"") for found in await client.keys("*"))
    finally:
        await client.aclose()
        await shared.close()
        await stranger.close()
