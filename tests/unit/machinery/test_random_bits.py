"""Random numbers that need not be unpredictable."""

from __future__ import annotations

import os

from tetrapod.generic.filters.audit_id import new_audit_id


def test_forked_processes_generate_different_audit_ids() -> None:
    generated = set()
    for _ in range(2):
        reader, writer = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.write(writer, new_audit_id().encode())
            os._exit(0)
        os.close(writer)
        generated.add(os.read(reader, 100))
        os.close(reader)
        os.waitpid(pid, 0)
    assert len(generated) == 2
    assert new_audit_id().encode() not in generated
