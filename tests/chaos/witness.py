"""Record every change of etcd's keys as it happens, because the history may be compacted before the end.

It uses etcd's JSON gateway, switches to another member when one fails, and resumes where it stopped.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import time
from typing import Final

from chaos.http import Address, Connection, NoAnswer, NotSent
from chaos.truth import Truth, truth_of
from support.etcd import Etcd, EtcdCluster

END: Final = "/chaos/end"
IDLE_TIMEOUT: Final = 3.0


class Lost(Exception):
    """The witness missed a change, so the history cannot be checked."""


def _coded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


class Witness:
    def __init__(self, etcd: Etcd | EtcdCluster) -> None:
        self._members = etcd.members if isinstance(etcd, EtcdCluster) else [etcd]
        self._changes: list[tuple[str, bytes | None, int]] = []
        self._next = 1
        self._ended = asyncio.Event()

    @property
    def revision(self) -> int:
        """Wait until all changes up to a revision are recorded."""
        return self._next - 1

    def wait_for(self, revision: int, timeout: float = 30) -> None:
        """As `until`, called from a thread: wait until all changes up to a revision are recorded."""
        deadline = time.monotonic() + timeout
        while self.revision < revision:
            if time.monotonic() > deadline:
                raise Lost(f"the witness is at {self.revision}, etcd at {revision}")
            time.sleep(0.02)

    async def work(self) -> None:
        turn = 0
        while True:
            member = self._members[turn % len(self._members)]
            turn += 1
            if member.running:
                with contextlib.suppress(NotSent, NoAnswer):
                    await self._follow(member)
            await asyncio.sleep(0.05)

    async def _follow(self, member: Etcd) -> None:
        create = {
            "key": _coded("/"),
            "range_end": _coded("0"),
            "start_revision": str(self._next),
            "progress_notify": True,
        }
        async with Connection(Address(member.url), 2).stream(
            "POST", "/v3/watch", {"create_request": create}, IDLE_TIMEOUT
        ) as (_, lines):
            async for line in lines:
                result = json.loads(line).get("result", {})
                if int(result.get("compact_revision", 0)) >= self._next:
                    raise Lost(f"etcd has forgotten what came after {self.revision}")
                for event in result.get("events", ()):
                    self._add(event)

    def _add(self, event: dict[str, dict[str, str] | str]) -> None:
        kv = event["kv"]
        assert isinstance(kv, dict)
        key = base64.b64decode(kv["key"]).decode()
        revision = int(kv["mod_revision"])
        value = None if event.get("type") == "DELETE" else base64.b64decode(kv.get("value", ""))
        self._changes.append((key, value, revision))
        if key == END:
            self._ended.set()
        self._next = revision + 1

    async def truth(self) -> Truth:
        """Return all changes up to a mark that is written now. etcd must be healthy."""
        await asyncio.to_thread(self._members[0].call, "/v3/kv/put", {"key": _coded(END), "value": ""})
        async with asyncio.timeout(60):
            await self._ended.wait()
        return truth_of(self._changes)
