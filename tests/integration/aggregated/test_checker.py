"""The conformance checker against faulty servers.

Correct servers are checked in the tutorial's test and with upstream's sample-apiserver.
"""

from __future__ import annotations

import json
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from support.failing_starts import run_command
from support.http_server import Answered, Asked, http_server
from support.server import free_port
from tetrapod.generic.certificates.authority import Authority

GROUP_VERSION = "bad.example.com/v1"
DISCOVERY = {
    "kind": "APIResourceList",
    "apiVersion": "v1",
    "groupVersion": GROUP_VERSION,
    "resources": [
        {
            "name": "things",
            "singularName": "thing",
            "namespaced": False,
            "kind": "Thing",
            "verbs": ["create", "get", "list", "watch"],
        }
    ],
}


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("certificates")
    authority = Authority.create("ca")
    for name, (certificate, key) in (
        ("proxy", authority.issue_client("front")),
        ("server", authority.issue_server("bad", ["localhost"])),
    ):
        (directory / f"{name}.crt").write_bytes(certificate)
        (directory / f"{name}.key").write_bytes(key)
    return directory


@contextmanager
def serving(certificates: Path, answer: Callable[[str], tuple[int, Any]]) -> Iterator[str]:
    def answered(asked: Asked) -> Answered:
        status, body = answer(asked.path + (f"?{asked.query}" if asked.query else ""))
        return Answered(status, body.encode() if isinstance(body, str) else json.dumps(body).encode())

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates / "server.crt", certificates / "server.key")
    with http_server(answered, context) as port:
        yield f"https://127.0.0.1:{port}"


def outcomes(url: str, certificates: Path) -> dict[str, str]:
    proxy = (f"--proxy-client-cert-file={certificates}/proxy.crt", f"--proxy-client-key-file={certificates}/proxy.key")
    ended = run_command("check-apiserver", url, GROUP_VERSION, *proxy, "--output=json", timeout=90)
    assert ended.returncode == 1
    assert "Traceback" not in ended.stderr
    return {finding["check"]: finding["outcome"] for finding in json.loads(ended.stdout)}


def test_a_server_that_accepts_everything_fails_the_checks(certificates: Path) -> None:
    def answer(path: str) -> tuple[int, Any]:
        return 200, DISCOVERY if path == f"/apis/{GROUP_VERSION}" else {"kind": "Whatever"}

    with serving(certificates, answer) as url:
        found = outcomes(url, certificates)
    assert {check for check, outcome in found.items() if outcome == "pass"} == {
        "ready",
        "discovery",
        "accepts identity headers of the front proxy",
    }
    assert [check for check, outcome in found.items() if outcome == "skip"] == ["certificate"]


def test_errors_that_are_not_statuses_are_reported(certificates: Path) -> None:
    with serving(certificates, lambda path: (500, "<html>oops</html>")) as url:
        found = outcomes(url, certificates)
    assert found["ready"] == found["discovery"] == found["OpenAPI"] == "fail"


def test_an_unreachable_server_fails_each_check(certificates: Path) -> None:
    assert set(outcomes(f"https://127.0.0.1:{free_port()}", certificates).values()) == {"fail", "skip"}


def test_a_discovery_document_without_its_media_type_is_reported(certificates: Path) -> None:
    group, _, version = GROUP_VERSION.partition("/")
    aggregated = {
        "kind": "APIGroupDiscoveryList",
        "items": [{"metadata": {"name": group}, "versions": [{"version": version}]}],
    }
    with serving(certificates, lambda path: (200, aggregated)) as url:
        assert outcomes(url, certificates)["aggregated discovery"] == "fail"


@pytest.mark.parametrize(
    "arguments", [("http://localhost:1", GROUP_VERSION), ("https://localhost:1", "v1"), ("https://localhost:1", "g/")]
)
def test_an_invalid_server_or_group_version_is_rejected(arguments: tuple[str, str]) -> None:
    ended = run_command("check-apiserver", *arguments)
    assert (ended.returncode, "Error: want " in ended.stderr) == (2, True)
