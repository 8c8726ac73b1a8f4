"""The embedded store compared with a small model, over random histories with reopening and compaction."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from tetrapod.generic.storage.backend import Compacted, FutureRevision
from tetrapod.generic.storage.sqlite import SqliteBackend
from tetrapod.generic.storage.sqlite.schema import FIRST_REVISION

KEYS = st.sampled_from(["/a", "/a/b", "/a/c", "/b/a", "/c"])
SPANS = st.sampled_from([("/", "0"), ("/a/", "/a0"), ("/a", "/b"), ("/x", "/y")])
State = dict[str, tuple[bytes, int, int]]  # value, modified, created


class SqliteMachine(RuleBasedStateMachine):
    @initialize()
    def begin(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.directory = tempfile.TemporaryDirectory()
        self.path = Path(self.directory.name) / "db"
        self.backend = SqliteBackend(self.path)
        self.states: dict[int, State] = {FIRST_REVISION: {}}
        self.events: list[tuple[int, str, bytes | None]] = []
        self.compacted = 0

    def run(self, awaitable: Any) -> Any:
        return self.loop.run_until_complete(awaitable)

    @property
    def now(self) -> int:
        return max(self.states)

    @property
    def state(self) -> State:
        return self.states[self.now]

    def record(self, key: str, value: bytes | None) -> None:
        revision = self.now + 1
        state = dict(self.state)
        if value is None:
            del state[key]
        else:
            created = state[key][2] if key in state else revision
            state[key] = (value, revision, created)
        self.states[revision] = state
        self.events.append((revision, key, value))

    @rule(key=KEYS, value=st.binary(max_size=20), stale=st.integers(0, 1))
    def put(self, key: str, value: bytes, stale: int) -> None:
        expected = self.state[key][1] if key in self.state else 0
        result = self.run(self.backend.put_if(key, value, expected + stale))
        assert result.succeeded is not bool(stale)
        if result.succeeded:
            self.record(key, value)
            assert result.revision == self.now
        elif key in self.state:
            assert (result.current.value, result.current.mod_revision, result.current.create_revision) == self.state[
                key
            ]
        else:
            assert result.current is None

    @rule(key=KEYS)
    def delete(self, key: str) -> None:
        expected = self.state[key][1] if key in self.state else 0
        result = self.run(self.backend.delete_if(key, expected))
        assert result.succeeded is (key in self.state)
        if result.succeeded:
            self.record(key, None)
            assert result.revision == self.now

    @rule(span=SPANS, back=st.integers(-1, 12), limit=st.integers(0, 3))
    def look(self, span: tuple[str, str], back: int, limit: int) -> None:
        revision = self.now - back
        if revision < 1:
            return
        reading = self.backend.range(*span, revision=revision, limit=limit)
        if revision > self.now:
            with pytest.raises(FutureRevision):
                self.run(reading)
        elif revision < self.compacted:
            with pytest.raises(Compacted):
                self.run(reading)
        else:
            result = self.run(reading)
            state = self.states.get(revision, {})  # before its first revision the store was empty
            wanted = [(key, *found) for key, found in sorted(state.items()) if span[0] <= key < span[1]]
            assert result.total == len(wanted)
            assert [tuple(kv[:4]) for kv in result.kvs] == (wanted[:limit] if limit else wanted)
            assert result.more is (0 < limit < len(wanted))

    @rule(span=SPANS, back=st.integers(0, 12))
    def watch(self, span: tuple[str, str], back: int) -> None:
        start = max(1, self.now - back)
        wanted = [event for event in self.events if event[0] >= start and span[0] <= event[1] < span[1]]

        async def replay() -> list[tuple[int, str, bytes | None]]:
            seen: list[tuple[int, str, bytes | None]] = []
            async with self.backend.watch(*span, start) as watch:
                while len(seen) < len(wanted):
                    seen += [(event.revision, event.key, event.value) for event in (await anext(watch)).events]
            return seen

        if start >= self.compacted:
            assert self.run(replay()) == wanted
        elif wanted:
            with pytest.raises(Compacted):
                self.run(replay())

    @rule(back=st.integers(0, 10))
    def compact(self, back: int) -> None:
        revision = self.now - back
        if revision <= self.compacted:
            with pytest.raises(Compacted):
                self.run(self.backend.compact(revision))
        else:
            self.run(self.backend.compact(revision))
            self.compacted = revision

    @rule()
    def reopen(self) -> None:
        self.run(self.backend.close())
        self.backend = SqliteBackend(self.path)

    @invariant()
    def the_revision_is_that_of_the_last_write(self) -> None:
        if hasattr(self, "backend"):
            assert self.run(self.backend.revision()) == self.now

    def teardown(self) -> None:
        if hasattr(self, "backend"):
            self.run(self.backend.close())
            self.loop.close()
            self.directory.cleanup()


SqliteMachine.TestCase.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)
TestSqliteAgainstItsModel = SqliteMachine.TestCase
