"""uids: UUIDs of version 4 that are never used twice."""

from __future__ import annotations

import os
import uuid
from concurrent.futures import ThreadPoolExecutor

from tetrapod.machinery.uids import new_uid


def test_uids_are_random_uuids_of_version_4() -> None:
    made = [uuid.UUID(new_uid()) for _ in range(1000)]
    assert {(uid.version, uid.variant) for uid in made} == {(4, uuid.RFC_4122)}
    for bit in range(128):
        ones = sum(uid.int >> bit & 1 for uid in made)
        fixed = bit in (62, 63) or 76 <= bit < 80
        assert fixed or 350 < ones < 650


def test_threads_never_get_the_same_uid() -> None:
    with ThreadPoolExecutor(8) as threads:
        made = [uid for uids in threads.map(lambda _: [new_uid() for _ in range(500)], range(16)) for uid in uids]
    assert len(set(made)) == len(made) == 8000


def test_a_forked_process_makes_other_uids() -> None:
    new_uid()
    reader, writer = os.pipe()
    if not os.fork():
        try:
            os.write(writer, "\n".join(new_uid() for _ in range(300)).encode())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        theirs = pipe.read().split("\n")
    os.wait()
    assert len(theirs) == 300
    assert set(theirs).isdisjoint(new_uid() for _ in range(300))
