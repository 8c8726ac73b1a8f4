"""--cert-dir: the server writes its serving certificate there if the directory has none, as kube-apiserver does."""

from __future__ import annotations

import ssl
import stat
import urllib.request
from pathlib import Path

import pytest

from support.failing_starts import start_error
from support.https_client import HttpsClient
from support.server import running
from tetrapod.generic.certificates.cert_dir import publish_serving
from tetrapod.generic.certificates.pki import write_pki


def test_a_missing_certificate_is_written_and_its_file_verifies_the_server(tmp_path: Path) -> None:
    certificate, key = tmp_path / "certs" / "apiserver.crt", tmp_path / "certs" / "apiserver.key"
    with running(tmp_path / "data", f"--cert-dir={certificate.parent}") as server:
        context = ssl.create_default_context(cafile=str(certificate))
        with urllib.request.urlopen(f"{server.url}/readyz", context=context, timeout=30) as answer:
            assert answer.status == 200
        assert HttpsClient(server.kubeconfig).call("GET", "/api/v1/namespaces").status == 200
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert stat.S_IMODE(certificate.stat().st_mode) == 0o644
    assert certificate.read_text().count("BEGIN CERTIFICATE") == 2
    written = certificate.read_bytes()
    with running(tmp_path / "data", f"--cert-dir={certificate.parent}"):
        assert certificate.read_bytes() == written


def test_a_written_certificate_is_replaced_after_its_renewal(tmp_path: Path) -> None:
    pki = write_pki(tmp_path / "pki", ["localhost"])
    certificate, _ = publish_serving(pki, str(tmp_path / "certs"))
    before = certificate.read_bytes()
    write_pki(tmp_path / "pki", ["localhost", "other"])
    assert publish_serving(pki, str(tmp_path / "certs"))[0].read_bytes() not in (b"", before)


def test_given_files_are_kept(tmp_path: Path) -> None:
    pki = write_pki(tmp_path / "pki", ["localhost"])
    certificate, key = tmp_path / "apiserver.crt", tmp_path / "apiserver.key"
    certificate.write_text("given")
    key.write_text("given")
    assert publish_serving(pki, str(tmp_path)) == (certificate, key)
    assert certificate.read_text() == key.read_text() == "given"


@pytest.mark.parametrize(("given", "missing"), [("apiserver.key", "apiserver.crt"), ("apiserver.crt", "apiserver.key")])
def test_half_of_a_given_pair_is_kept_and_prevents_the_start(tmp_path: Path, given: str, missing: str) -> None:
    (tmp_path / "certs").mkdir()
    file = tmp_path / "certs" / given
    file.write_text("given")
    text = f"error reading {tmp_path}/certs/{missing}, certificate and key must be supplied as a pair"
    assert text in start_error(tmp_path / "data", f"--cert-dir={file.parent}")
    assert file.read_text() == "given"
    assert [path.name for path in file.parent.iterdir()] == [given]


def test_a_pair_that_was_written_in_part_is_completed(tmp_path: Path) -> None:
    pki = write_pki(tmp_path / "pki", ["localhost"])
    certificate, key = publish_serving(pki, str(tmp_path / "certs"))
    for file in (certificate, key):
        content = file.read_bytes()
        file.unlink()
        publish_serving(pki, str(tmp_path / "certs"))
        assert file.read_bytes() == content
