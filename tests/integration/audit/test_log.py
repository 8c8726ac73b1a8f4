"""The log backend: rotation like lumberjack's, truncation, and write errors."""

from __future__ import annotations

import gzip
import os
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import orjson
import pytest

from integration.audit.conftest import POLICY, Audited
from support.failing_starts import failed_start
from support.server import running
from tetrapod.generic.audit.backend import IgnoringErrors, Union
from tetrapod.generic.audit.event import Event
from tetrapod.generic.audit.logfile import LogBackend, PlainFile, open_writer
from tetrapod.generic.audit.metrics import ERROR_TOTAL
from tetrapod.generic.audit.rotation import RotatingFile, RotationConfig
from tetrapod.generic.audit.truncate import Truncating


def event(**more: object) -> Event:
    document = {
        "level": "RequestResponse",
        "auditID": "a",
        "stage": "ResponseComplete",
        "verb": "get",
        "requestURI": "/",
        "user": {},
    }
    return Event({**document, "requestReceivedTimestamp": "2026-01-02T03:04:05.120000Z", **more})


def written(path: Path, config: RotationConfig, lines: Sequence[bytes]) -> list[Path]:
    """Write events, close the log, and return its rotated files by name."""
    file = RotatingFile(path, config)
    for line in lines:
        file.write(line)
    file.close()
    return sorted(found for found in path.parent.iterdir() if found != path)


def test_a_full_file_is_rotated_with_a_timestamp_in_its_name(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    old = written(path, RotationConfig(10), [b"12345678\n", b"abcdefgh\n", b"ABC\n"])
    assert path.read_bytes() == b"ABC\n" and [found.read_bytes() for found in old] == [b"12345678\n", b"abcdefgh\n"]
    assert all(datetime.strptime(found.name, "audit-%Y-%m-%dT%H-%M-%S.%f.log") for found in old)


def test_an_existing_file_is_appended_to_and_keeps_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    path.write_bytes(b"12\n")
    path.chmod(0o640)
    (old,) = written(path, RotationConfig(10), [b"34\n", b"56789\n"])
    assert old.read_bytes() == b"12\n34\n" and path.stat().st_mode & 0o777 == 0o640


def test_an_event_larger_than_a_file_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="write length 11 exceeds maximum file size 10"):
        RotatingFile(tmp_path / "audit.log", RotationConfig(10)).write(b"x" * 11)


def test_old_files_are_compressed_and_removed_by_number_and_age(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    ancient = datetime.now(UTC) - timedelta(days=3)
    kept = [tmp_path / "audit-notes.log", tmp_path / "other-2020-01-01T00-00-00.000.log"]
    gone = tmp_path / f"audit-{ancient:%Y-%m-%dT%H-%M-%S}.000.log"
    for file in (*kept, gone):
        file.write_bytes(b"x")
    assert written(path, RotationConfig(10, max_age_days=2), [b"1" * 9]) == kept
    old = written(path, RotationConfig(10, max_backups=2, compress=True), [bytes([65 + i]) * 9 for i in range(6)])
    old = [found for found in old if found not in kept]
    assert [gzip.decompress(found.read_bytes()) for found in old] == [
        b"D" * 9,
        b"E" * 9,
    ] and path.read_bytes() == b"F" * 9


async def test_large_events_are_truncated_and_larger_ones_dropped(tmp_path: Path) -> None:
    path, lost = tmp_path / "audit.log", ERROR_TOTAL.values.get(("truncate",), 0)
    backend = Truncating(LogBackend(open_writer(str(path), RotationConfig())), 1000, 1500)
    large = event(requestObject=orjson.Fragment(b'"%b"' % (b"x" * 1000)))
    hopeless = event(requestURI="/" + "x" * 1000)
    assert await backend.process([event(), large, hopeless])
    first, second = map(orjson.loads, path.read_bytes().splitlines())
    assert (
        "annotations" not in first
        and second["annotations"] == {"audit.k8s.io/truncated": "true"}
        and "requestObject" not in second
    )
    assert ERROR_TOTAL.values[("truncate",)] == lost + 1
    await backend.close()


async def test_an_event_that_cannot_be_written_is_counted_and_others_are_written(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    path.touch()
    broken, good = PlainFile(path), LogBackend(PlainFile(path), "legacy")
    broken.close()
    reused = os.open(os.devnull, os.O_RDONLY)  # the descriptor number now belongs to a read-only file
    lost = ERROR_TOTAL.values.get(("log",), 0)
    assert not await Union([LogBackend(broken), good]).process([event()])
    assert await IgnoringErrors(LogBackend(broken)).process([event()])
    assert ERROR_TOTAL.values[("log",)] == lost + 2
    assert path.read_text().count(' AUDIT: id="a" ') == 1
    os.close(reused)


def test_in_strict_mode_requests_that_cannot_be_logged_are_rejected(tmp_path: Path, files: Path) -> None:
    log = tmp_path / "full" / "audit.log"
    log.parent.mkdir()
    log.symlink_to("/dev/full")
    flags = [
        "--audit-policy-file",
        str(files / "policy.yaml"),
        "--audit-log-path",
        str(log),
        "--audit-log-maxsize",
        "0",
    ]
    with running(
        tmp_path / "data", *flags, "--audit-log-mode", "blocking-strict", "--token-auth-file", str(files / "tokens.csv")
    ) as server:
        audited = Audited(server.url, log)
        rejected = audited.ask("GET", "/version?a=<")
        assert rejected.status == 500
        assert rejected.body == b'Internal Server Error: "/version?a=&lt;": failed to store audit event\n'
        assert audited.ask("GET", "/readyz").status == 200  # a path that is not audited


def test_events_go_to_standard_output_when_asked(tmp_path: Path, files: Path) -> None:
    flags = ["--audit-policy-file", str(files / "policy.yaml"), "--audit-log-path", "-", "--audit-log-mode", "batch"]
    with running(tmp_path / "data", *flags, "--token-auth-file", str(files / "tokens.csv")) as server:
        Audited(server.url, server.log).ask("GET", "/version", audit_id="to-stdout")
    text = server.log.read_text()  # at the end of the server, queued events are written
    assert '"auditID":"to-stdout","stage":"ResponseComplete"' in text


def test_a_server_with_a_bad_policy_does_not_start(tmp_path: Path) -> None:
    bad = tmp_path / "policy.yaml"
    bad.write_text(POLICY.replace("level: None", "level: Everything", 1))
    failed = failed_start(tmp_path / "data", "--audit-policy-file", str(bad))
    assert failed.code == 1
    assert failed.error == (
        'Error: loading audit policy file: rules[0].level: Unsupported value: "Everything": supported values: '
        f'"None", "Metadata", "Request", "RequestResponse": from file {bad}'
    )
