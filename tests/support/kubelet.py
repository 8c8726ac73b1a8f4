"""The fake kubelet (tests/e2e/fakekubelet) as a child process."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from support.goprogram import build_go_program
from tetrapod.generic.certificates.authority import Authority

SOURCE = Path(__file__).parents[1] / "e2e/fakekubelet"


@dataclass(frozen=True)
class FakeKubelet:
    port: int
    log: Path

    def requests(self) -> list[dict[str, str]]:
        """Return the requests that it has received: method, uri, upgrade, protocol, who."""
        return [json.loads(line) for line in self.log.read_text().splitlines() if line.startswith("{")]


@contextmanager
def fake_kubelet(directory: Path) -> Iterator[FakeKubelet]:
    """Run a fake kubelet. Its CA is written to `kubelet-ca.crt` in `directory`."""
    authority = Authority.create("kubelet-ca")
    certificate, key = authority.issue_server("kubelet", ["127.0.0.1"])
    for name, data in (
        ("kubelet-ca.crt", authority.certificate_pem),
        ("kubelet.crt", certificate),
        ("kubelet.key", key),
    ):
        (directory / name).write_bytes(data)
    log = directory / "kubelet.log"
    argv = [
        str(build_go_program(SOURCE, "fakekubelet")),
        f"-certificate={directory / 'kubelet.crt'}",
        f"-key={directory / 'kubelet.key'}",
    ]
    with log.open("wb") as out, subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=out, text=True) as process:
        try:
            assert process.stdout is not None
            yield FakeKubelet(int(process.stdout.readline()), log)
        finally:
            process.kill()
