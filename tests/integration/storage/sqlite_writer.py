"""A process for test_sqlite_durability that writes until it is killed, and prints each acknowledged write."""

from __future__ import annotations

import asyncio
import os
import sys

from tetrapod.generic.storage.sqlite import SqliteBackend


async def main(path: str) -> None:
    backend = SqliteBackend(path)

    async def write(writer: int) -> None:
        number = 0
        while True:
            result = await backend.put_if(f"/w{writer}/{number:06}", os.urandom(500), 0)
            assert result.succeeded
            os.write(1, f"/w{writer}/{number:06} {result.revision}\n".encode())
            number += 1

    await asyncio.gather(*(write(writer) for writer in range(8)))


asyncio.run(main(sys.argv[1]))
