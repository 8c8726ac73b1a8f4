"""Clients that write and read a small set of shared objects, and record each request and its response."""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import Sequence
from typing import Any, Final

from chaos.history import History, Operation, Outcome, Seen, Verb
from chaos.http import Address, Answer, Connection, NoAnswer, NotSent
from chaos.kinds import KINDS, MARK, Kind

NAMES: Final = 8  # objects of each kind
PAUSE: Final = 0.03  # the average pause between two requests of a client
MERGE: Final = "application/merge-patch+json"
FOREGROUND: Final = {"kind": "DeleteOptions", "apiVersion": "v1"}


class Client:
    """A client with one request at a time, sent to each server in turn over one connection to each."""

    def __init__(self, name: str, addresses: Sequence[Address], history: History, timeout: float = 10) -> None:
        self.name = name
        self.history = history
        self._connections = [Connection(address, timeout) for address in addresses]
        self._turn = itertools.cycle(self._connections)
        self._marks = itertools.count(1)

    def mark(self) -> str:
        return f"{self.name}-{next(self._marks)}"

    async def create(self, kind: Kind, name: str) -> Operation:
        operation = self._begin(Verb.CREATE, kind, name, mark=self.mark())
        return await self._write(operation, "POST", kind.collection, kind.object(name, operation.mark, 0))

    async def update(self, kind: Kind, name: str, on: Seen) -> Operation:
        """Increment the count with a read and an update."""
        operation = self._begin(Verb.UPDATE, kind, name, mark=self.mark(), expected=on.revision)
        return await self._write(
            operation, "PUT", kind.path(name), kind.object(name, operation.mark, on.count + 1, on.revision)
        )

    async def replace(self, kind: Kind, name: str) -> Operation:
        operation = self._begin(Verb.REPLACE, kind, name, mark=self.mark())
        return await self._write(operation, "PUT", kind.path(name), kind.object(name, operation.mark, 0))

    async def patch(self, kind: Kind, name: str) -> Operation:
        operation = self._begin(Verb.PATCH, kind, name, mark=self.mark())
        return await self._write(
            operation, "PATCH", kind.path(name), {"metadata": {"annotations": {MARK: operation.mark}}}, MERGE
        )

    async def delete(self, kind: Kind, name: str, on: Seen | None = None) -> Operation:
        operation = self._begin(Verb.DELETE, kind, name, expected=0 if on is None else on.revision)
        body: dict[str, Any] = dict(FOREGROUND)
        if on is not None:
            body["preconditions"] = {"resourceVersion": str(on.revision)}
        return await self._write(operation, "DELETE", kind.path(name), body)

    async def get(self, kind: Kind, name: str, cached: bool = False, at_least: int = 0) -> Operation:
        operation = self._begin(Verb.GET, kind, name, cached=cached, at_least=at_least)
        query = f"?resourceVersion={at_least}" if cached or at_least else ""
        answer = await self._ask(operation, "GET", kind.path(name) + query)
        if operation.outcome is Outcome.DONE and answer is not None:
            operation.seen = Seen.of(answer.json)
        return operation

    async def list(self, kind: Kind, cached: bool = False, at_least: int = 0, limit: int = 0) -> Operation:
        """List objects. With `limit` the pages together count as one list."""
        operation = self._begin(Verb.LIST, kind, cached=cached, at_least=at_least)
        query = f"limit={limit}" + (f"&resourceVersion={at_least}" if cached or at_least else "")
        more = ""
        while True:
            answer = await self._ask(operation, "GET", f"{kind.collection}?{query}{more}")
            if operation.outcome is not Outcome.DONE or answer is None:
                return operation
            page = answer.json
            operation.revision = int(page["metadata"]["resourceVersion"])
            operation.items |= {item["metadata"]["name"]: Seen.of(item) for item in page["items"]}
            if not (token := page["metadata"].get("continue")):
                return operation
            operation.outcome = Outcome.UNKNOWN  # until the last page
            query, more = f"limit={limit}", f"&continue={token}"

    def _begin(self, verb: Verb, kind: Kind, name: str = "", **more: Any) -> Operation:
        return self.history.begin(self.name, verb, kind.name, name, **more)

    async def _write(
        self, operation: Operation, method: str, path: str, body: Any, content_type: str = "application/json"
    ) -> Operation:
        answer = await self._ask(operation, method, path, body, content_type)
        if operation.outcome is Outcome.DONE and answer is not None:
            document = answer.json
            if operation.verb is Verb.DELETE:
                operation.uid = document.get("details", {}).get("uid") or document["metadata"]["uid"]
            else:
                operation.revision = int(document["metadata"]["resourceVersion"])
                operation.seen = Seen.of(document)
        return operation

    async def _ask(
        self, operation: Operation, method: str, path: str, body: Any = None, content_type: str = "application/json"
    ) -> Answer | None:
        try:
            answer = await next(self._turn).ask(method, path, body, content_type)
        except NotSent as error:
            operation.outcome, operation.reason = Outcome.REJECTED, f"not sent: {error}"
            operation.ended = self.history.clock()
            return None
        except NoAnswer as error:
            operation.outcome, operation.reason = Outcome.UNKNOWN, str(error)
            return None
        operation.status = answer.status
        if answer.status >= 500:  # the write may have happened despite a 5xx
            operation.outcome, operation.reason = Outcome.UNKNOWN, answer.body.decode(errors="replace")[:300]
            return None
        operation.ended = self.history.clock()
        operation.outcome = Outcome.DONE if answer.status < 300 else Outcome.REJECTED
        if operation.outcome is Outcome.REJECTED:
            operation.reason = str(answer.json.get("message", ""))[:300]
        return answer

    def close(self) -> None:
        for connection in self._connections:
            connection.close()


class Reader(Client):
    """A client that reads in every way, chosen by its random numbers.

    It knows objects by the last response about them.
    """

    def __init__(
        self,
        name: str,
        addresses: Sequence[Address],
        history: History,
        seed: int,
        kinds: Sequence[Kind] = KINDS,
        timeout: float = 10,
    ) -> None:
        super().__init__(name, addresses, history, timeout)
        self._kinds = kinds
        self._random = random.Random(f"{seed}/{name}")
        self._known: dict[tuple[str, str], Seen] = {}

    async def work(self) -> None:
        try:
            while True:
                operation = await self.one()
                self._learn(operation)
                trouble = operation.outcome is Outcome.UNKNOWN or operation.status == 0
                await asyncio.sleep(self._random.uniform(0, 2 * PAUSE) * (4 if trouble else 1))
        finally:
            self.close()

    def _learn(self, operation: Operation) -> None:
        key = (operation.kind, operation.name)
        if operation.seen is not None:
            self._known[key] = operation.seen
        elif operation.outcome is Outcome.REJECTED or operation.verb is Verb.DELETE:
            self._known.pop(key, None)

    def _which(self) -> tuple[Kind, str, Seen | None]:
        kind, name = self._random.choice(self._kinds), f"o{self._random.randrange(NAMES)}"
        return kind, name, self._known.get((kind.name, name))

    async def one(self) -> Operation:
        return await self._read(self._random.choice((Verb.GET, Verb.LIST)), *self._which())

    async def _read(self, verb: Verb, kind: Kind, name: str, known: Seen | None) -> Operation:
        how = self._random.randrange(4)
        at_least = known.revision if known is not None and how == 2 else 0
        if verb is Verb.GET:
            return await self.get(kind, name, cached=how == 3, at_least=at_least)
        return await self.list(kind, cached=how == 3, at_least=at_least, limit=3 if how == 1 else 0)


class Worker(Reader):
    """A client that also writes."""

    async def one(self) -> Operation:
        kind, name, known = self._which()
        verb = self._random.choices(list(Verb), weights=(20, 30, 5, 15, 10, 25, 12))[0]
        if verb is Verb.CREATE:
            return await self.create(kind, name)
        if verb is Verb.UPDATE:
            return await (self.update(kind, name, known) if known is not None else self.get(kind, name))
        if verb is Verb.REPLACE:
            return await self.replace(kind, name)
        if verb is Verb.PATCH:
            return await self.patch(kind, name)
        if verb is Verb.DELETE:
            return await self.delete(kind, name, known if self._random.random() < 0.5 else None)
        return await self._read(verb, kind, name, known)
