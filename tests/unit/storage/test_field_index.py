"""The index of a watch cache by the value of a field."""

from __future__ import annotations

import asyncio
import random

import orjson

from tetrapod.generic.storage.cacher.entries import Entries
from tetrapod.generic.storage.cacher.entry import StoredEntry
from tetrapod.generic.storage.cacher.field_index import FieldIndex
from tetrapod.generic.storage.entry import Entry, IndexedValue


def _pod(key: str, node: str) -> StoredEntry:
    obj = {"kind": "Pod", "apiVersion": "v1", "metadata": {"resourceVersion": "7"}, "spec": {"nodeName": node}}
    return StoredEntry.from_served(key, orjson.dumps(obj), 7)


def _node_of(entry: Entry) -> str:
    node: str = entry.peek()["spec"]["nodeName"]
    return node


class _Pods:
    """Pods, and their index by node."""

    def __init__(self, **nodes: str) -> None:
        self.entries = Entries()
        self.index = FieldIndex(self.entries)
        for name, node in nodes.items():
            self.put(f"ns/{name}", node)

    def put(self, key: str, node: str) -> None:
        entry = _pod(key, node)
        self.index.update(self.entries.put(entry), entry)

    def remove(self, key: str) -> None:
        self.index.update(self.entries.remove(key), None)

    def of(self, node: str, prefix: str = "", start: str = "") -> list[str] | None:
        found = self.index.within(IndexedValue("spec.nodeName", node, _node_of), prefix, start)
        return None if found is None else [entry.key for entry in found]


async def test_an_index_is_filled_at_its_first_use_and_follows_changes() -> None:
    pods = _Pods(b="1", a="1", c="2")
    assert pods.of("1") is None
    await pods.index.fill(_node_of)
    assert (pods.of("1"), pods.of("2"), pods.of("3")) == (["ns/a", "ns/b"], ["ns/c"], [])
    pods.put("ns/b", "2")
    pods.put("ns/a", "1")
    pods.put("other/a", "2")
    assert (pods.of("1"), pods.of("2")) == (["ns/a"], ["ns/b", "ns/c", "other/a"])
    assert pods.of("2", prefix="ns/", start="ns/c") == ["ns/c"]
    pods.remove("ns/a")
    assert pods.of("1") == []


async def test_changes_while_an_index_is_filled_are_in_it(seed: int = 5) -> None:
    pods, chance = _Pods(), random.Random(seed)
    for number in range(3_000):
        pods.put(f"ns/{number:04}", str(chance.randrange(3)))
    fills = [asyncio.create_task(pods.index.fill(_node_of)) for _ in range(2)]
    steps = 0
    while not all(fill.done() for fill in fills):
        await asyncio.sleep(0)
        steps += 1
        key = f"ns/{chance.randrange(3_100):04}"
        if chance.random() < 0.3 and key in pods.entries:
            pods.remove(key)
        else:
            pods.put(key, str(chance.randrange(4)))
    assert steps > 2
    for node in "0123":
        assert pods.of(node) == [entry.key for entry in pods.entries.within("") if _node_of(entry) == node]


async def test_an_index_whose_filling_was_cancelled_is_filled_by_the_next_caller() -> None:
    pods = _Pods()
    for number in range(3_000):
        pods.put(f"ns/{number:04}", str(number % 3))
    fill = asyncio.create_task(pods.index.fill(_node_of))
    await asyncio.sleep(0)
    fill.cancel()
    await asyncio.gather(fill, return_exceptions=True)
    assert pods.of("0") is None
    pods.put("ns/0000", "1")
    pods.remove("ns/0003")
    await pods.index.fill(_node_of)
    assert pods.of("0") == [f"ns/{number:04}" for number in range(6, 3_000, 3)]
    assert pods.of("1")[:2] == ["ns/0000", "ns/0001"]  # type: ignore[index]
