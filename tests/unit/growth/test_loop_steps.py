"""Tests that long work for one request is done in small steps of the event loop, or in threads."""

from __future__ import annotations

import asyncio
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from tetrapod.auth.rbac.index import RbacIndex
from tetrapod.auth.reviews import access
from tetrapod.auth.reviews.access import (
    LocalSubjectAccessReviews,
    SelfSubjectAccessReviews,
    SubjectAccessReviews,
    validate_subject_spec,
)
from tetrapod.core.v1.services.allocation import Allocation
from tetrapod.generic.endpoints import large_objects
from tetrapod.generic.endpoints.watch_frames import BATCH, FORMED_AT_ONCE
from tetrapod.generic.endpoints.watch_serving import WatchServing
from tetrapod.generic.http.request import Request
from tetrapod.generic.registry.context import Context
from tetrapod.generic.registry.deletecollection import delete_collection
from tetrapod.generic.scheduling import offload
from tetrapod.generic.storage.cacher import writing
from tetrapod.generic.storage.cacher.entry_reader import EntryReader
from tetrapod.generic.storage.queries import ListPage, ListQuery
from tetrapod.generic.storage.watch import WatchEvent
from tetrapod.machinery.field import LEFT_OUT, MAX_COLLECTED
from tetrapod.machinery.status import StatusError
from tetrapod.machinery.user import UserInfo


class Steps:
    """Counts the steps of the event loop while it is entered."""

    async def __aenter__(self) -> Steps:
        self.count = 0
        self._ticking = asyncio.create_task(self._tick())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._ticking.cancel()

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(0)
            self.count += 1


class _Source:
    """A watch with initial events, which the consumer reads without waiting."""

    async def initial(self) -> Any:
        for _ in range(10):
            yield [WatchEvent("BOOKMARK", None, number) for number in range(BATCH)]

    def subscribe(self, sink: Any) -> None:
        """Ignore the sink, because this watch ends after its initial events."""

    async def ended(self) -> None:
        """Return at once."""


@pytest.mark.parametrize("at_once", [BATCH, FORMED_AT_ONCE])
async def test_initial_events_of_a_watch_are_encoded_in_many_steps(at_once: int) -> None:
    written: list[bytes] = []
    serving = object.__new__(WatchServing)
    serving._source = _Source()  # type: ignore[assignment]
    serving._frames = SimpleNamespace(at_once=at_once, frame=lambda event: b"%d" % event.revision)  # type: ignore[assignment]
    serving._catching_up = None

    async def send(frames: list[bytes]) -> bool:
        assert len(frames) <= at_once
        written.extend(frames)
        return True

    serving._send = send  # type: ignore[method-assign]
    serving._keep_pace = serving._source.ended  # type: ignore[method-assign]
    serving._begun = lambda batch: None  # type: ignore[method-assign]
    async with Steps() as steps:
        await serving._push()
    assert written == [b"%d" % event for _ in range(10) for event in range(BATCH)]
    assert steps.count >= 10 * BATCH // at_once - 2


async def test_a_dry_run_of_deletecollection_takes_many_steps() -> None:
    class Verbs:
        deleted = 0

        async def list(self, ctx: Context, query: ListQuery) -> ListPage:
            return ListPage([SimpleNamespace(name=f"a{i}") for i in range(800)], "1", "", None)

        async def delete(self, *_: object) -> Any:
            self.deleted += 1
            return None, True

    verbs = Verbs()
    async with Steps() as steps:
        await delete_collection(verbs, Context(dry_run=True), {}, ListQuery("configmaps/"), None)
    assert verbs.deleted == 800
    assert steps.count >= 90


async def test_large_objects_are_freed_in_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    freed: list[Any] = []

    async def in_thread(work: Any, *arguments: Any) -> Any:
        freed.append(work.__name__)
        return await offload.in_thread(work, *arguments)

    monkeypatch.setattr(large_objects, "in_thread", in_thread)
    request, small = Request("POST", "/"), Request("POST", "/")
    context = Context()
    large_objects.set_large(context, request, large=True)
    kept = {"a": [1]}
    context.discard({"b": [kept]})
    await large_objects.free(request)
    large_objects.set_large(Context(), small, large=False)
    await large_objects.free(small)
    assert freed == ["free_large"]
    assert kept == {"a": [1]}
    assert not request.state


async def test_large_objects_are_encoded_in_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    called = []

    async def in_thread(work: Any, *arguments: Any) -> Any:
        called.append(work.__name__)
        return work(*arguments)

    async def put_if(*_: object, **__: object) -> Any:
        return SimpleNamespace(succeeded=True, revision=7)

    monkeypatch.setattr(writing, "in_thread", in_thread)
    config: Any = SimpleNamespace(api_version="v1", kind="ConfigMap")
    cache: Any = SimpleNamespace(reader=EntryReader(), filled=True, revision=7)
    writer = writing.Writer(SimpleNamespace(put_if=put_if), "/", cache, config, None)  # type: ignore[arg-type]
    writer._stored_entry = lambda key, raw, *_: raw  # type: ignore[method-assign]
    obj = {"metadata": {"name": "a"}, "data": {f"k{i}": "v" for i in range(100)}}
    plain = await writer.create("a", obj, 0)
    assert not called
    assert await writer.create("a", obj, 0, large=True) == plain
    assert called == ["_encode"]


class _Ports:
    """A node port allocator in which nothing is allocated."""

    async def taken(self) -> set[int]:
        return set()


@pytest.mark.parametrize("update", [False, True], ids=["create", "update"])
@pytest.mark.parametrize("requested", [False, True], ids=["any", "requested"])
async def test_node_ports_of_a_dry_run_take_linear_time_and_many_steps(update: bool, requested: bool) -> None:
    examined = 0

    class Port(dict[str, Any]):
        def get(self, *arguments: Any) -> Any:
            nonlocal examined
            examined += 1
            return super().get(*arguments)

    many = 4_000
    ports = [Port(port=i, **({"nodePort": 30_000 + i} if requested else {})) for i in range(1, many)]
    service = {"metadata": {"name": "s"}, "spec": {"type": "NodePort", "clusterIP": "None", "ports": ports}}
    allocation = Allocation(None, _Ports(), True)  # type: ignore[arg-type]
    async with Steps() as steps:
        await (allocation.update(service, service) if update else allocation._first_ports(service))
    assert examined < 20 * many
    assert steps.count >= 2
    base = 30_000 if requested else 32_768
    assert [port["nodePort"] for port in ports] == [base + i for i in range(1, many)]


def test_an_access_review_creates_few_errors_for_many_mistakes() -> None:
    attributes = {"verb": "get", "labelSelector": {"requirements": [{}] * 20_000}}
    errors = validate_subject_spec({"user": "a", "resourceAttributes": attributes})
    assert len(errors) > MAX_COLLECTED
    assert sum(error is not LEFT_OUT for error in errors) <= MAX_COLLECTED


@pytest.mark.parametrize("kind", [SubjectAccessReviews, SelfSubjectAccessReviews, LocalSubjectAccessReviews])
async def test_the_errors_of_a_large_access_review_are_counted_in_a_thread(
    monkeypatch: pytest.MonkeyPatch, kind: Any
) -> None:
    threads: list[threading.Thread] = []

    def invalid(*arguments: Any) -> StatusError:
        threads.append(threading.current_thread())
        return StatusError(422, "Invalid", "")

    monkeypatch.setattr(access, "invalid", invalid)
    requirements: list[dict[str, Any]] = [{}] * 20_000
    attributes = {"verb": "get", "namespace": "n", "labelSelector": {"requirements": requirements}}
    review = {"spec": {"user": "a", "resourceAttributes": attributes}}
    context = SimpleNamespace(large=True, namespace="n", user=UserInfo("a"))
    with pytest.raises(StatusError):
        await kind(None).create(context, "", review, None, {})
    assert threads
    assert threading.main_thread() not in threads


def test_rules_of_a_user_with_very_many_groups_are_not_cached() -> None:
    index = RbacIndex(SimpleNamespace(resource=lambda config: None))
    rule = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}
    index.put("ClusterRole", "", "r", {"metadata": {"name": "r"}, "rules": [rule]})
    subjects = [{"kind": "Group", "apiGroup": "rbac.authorization.k8s.io", "name": name} for name in ("g5", "x")]
    body = {"metadata": {"name": "b"}, "subjects": subjects, "roleRef": {"kind": "ClusterRole", "name": "r"}}
    index.put("ClusterRoleBinding", "", "b", body)
    few = index.rules_of(UserInfo("a", "", ("g4", "g5")))
    assert index._sets.count == 1
    many = index.rules_of(UserInfo("a", "", tuple(f"g{i}" for i in range(5000))))
    assert index._sets.count == 1
    assert few.size == many.size == 1


@pytest.mark.parametrize(
    ("body", "large"),
    [
        (b'{"a":[' + b",".join([b"{}"] * 1300) + b"]}", False),
        (b'{"a":[' + b",".join([b"{}"] * 1400) + b"]}", True),
        (b"a:\n" + b"- {}\n" * 1100, True),
        (b"k8s\0" + b"\x12\0" * 4100, True),
        (b"k8s\0" + b"\x0a\0" * 4000, False),
        (b'{"a":"' + b"x" * 10_000 + b'"}', False),
        (b'{"a":"' + b"x" * 40_000 + b'"}', True),
    ],
    ids=["few members", "many members", "many lines", "long message", "short message", "one value", "many bytes"],
)
def test_a_body_is_large_by_its_bytes_or_its_members(body: bytes, large: bool) -> None:
    assert offload.is_large(body) is large
