"""`tetrapod kubeconfig` for the directories of one process and of four services."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from cryptography import x509

from tetrapod.cli.main import main
from tetrapod.generic.certificates.pki import Pki, write_pki
from tetrapod.generic.certificates.services import write_service_certificates


def run(directory: Path, *flags: str) -> Result:
    return CliRunner().invoke(main, ["kubeconfig", f"--data-dir={directory}", *flags])


def one_process(directory: Path) -> Pki:
    return write_pki(directory / "pki", ["localhost"])


def four_services(directory: Path) -> Pki:
    return write_service_certificates(directory, ["localhost"])


@pytest.mark.parametrize("create", [one_process, four_services])
def test_the_ca_of_clients_signs_the_certificate_of_the_user(tmp_path: Path, create: Callable[[Path], Pki]) -> None:
    pki = create(tmp_path)
    ended = run(tmp_path, "--server=https://example.com", "--user=jane", "--group=a", "--group=b")
    assert ended.exit_code == 0, ended.output
    config = json.loads(ended.output)
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    assert cluster["server"] == "https://example.com"
    assert base64.b64decode(cluster["certificate-authority-data"]) == pki.ca.read_bytes()
    certificate = x509.load_pem_x509_certificate(base64.b64decode(user["client-certificate-data"]))
    assert certificate.subject.rfc4514_string() == "CN=jane,O=b,O=a"
    certificate.verify_directly_issued_by(x509.load_pem_x509_certificate(pki.client_ca.read_bytes()))


def test_the_error_names_the_directories_that_were_searched(tmp_path: Path) -> None:
    four_services(tmp_path)
    ended = run(tmp_path / "core")
    assert ended.exit_code == 1
    assert ended.output == (
        f"Error: no CA in {tmp_path}/core/pki or {tmp_path}/core/ca: --data-dir must be the data directory of "
        "`tetrapod up`, which has run, or the --out of `tetrapod certs`\n"
    )


def test_a_missing_or_malformed_key_of_the_ca_is_an_error(tmp_path: Path) -> None:
    key = four_services(tmp_path).key("client-ca")
    key.write_text("malformed")
    malformed = run(tmp_path)
    assert malformed.exit_code == 1
    assert malformed.output.startswith(f"Error: the CA in {tmp_path}/ca is malformed: ")
    key.unlink()
    missing = run(tmp_path)
    assert (missing.exit_code, missing.output) == (1, f"Error: No such file or directory: {key}\n")
