"""`write_pki` and kubeconfigs."""

from __future__ import annotations

import asyncio
import json
import ssl
import subprocess
import sys
from pathlib import Path

import pytest

from tetrapod.apps.embedded import renew_periodically
from tetrapod.generic.certificates import authority, kubeconfig, write_kubeconfig, write_pki
from tetrapod.generic.certificates.pki import renew_leaves


def contents(directory: Path) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in directory.iterdir()}


def test_a_second_run_changes_nothing_and_does_not_import_cryptography(tmp_path: Path) -> None:
    write_pki(tmp_path, ["localhost", "127.0.0.1"])
    before = contents(tmp_path)
    code = (
        "import sys; from tetrapod.generic.certificates import write_pki;"
        f"write_pki({str(tmp_path)!r}, ['127.0.0.1']); assert 'cryptography' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env={"PYTHONPATH": ":".join(sys.path)})
    assert contents(tmp_path) == before


def test_private_files_are_private(tmp_path: Path) -> None:
    write_pki(tmp_path, ["localhost"])
    modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.glob("*.key")}
    assert "sa.key" in modes and "ca.key" in modes
    assert set(modes.values()) == {0o600}


def test_a_new_host_is_added_and_old_ones_stay(tmp_path: Path) -> None:
    pki = write_pki(tmp_path, ["localhost"])
    ca = pki.ca.read_bytes()
    write_pki(tmp_path, ["example.com", "10.0.0.1"])
    assert authority.hosts(pki.serving[0].read_bytes()) == ["localhost", "example.com", "10.0.0.1"]
    assert pki.ca.read_bytes() == ca


def test_expiring_certificates_are_renewed_by_the_same_authority(tmp_path: Path) -> None:
    pki = write_pki(tmp_path, ["localhost"])
    before = contents(tmp_path)
    write_pki(tmp_path, ["localhost"], renew_before=366 * 86400)
    after = contents(tmp_path)
    changed = {name for name in after if after[name] != before[name]} - {"pki.json"}
    assert changed == {f"{n}.{e}" for n in ("apiserver", "admin", "front-proxy-client") for e in ("crt", "key")}
    assert authority.hosts(pki.serving[0].read_bytes()) == ["localhost"]


def test_a_replaced_certificate_is_looked_at_again(tmp_path: Path) -> None:
    pki = write_pki(tmp_path, ["localhost"])
    own = authority.Authority.load(pki.ca.read_bytes(), pki.key("ca").read_bytes())
    certificate, key = own.issue_server("mine", ["mine.example.com"])
    pki.serving[0].write_bytes(certificate)
    pki.serving[1].write_bytes(key)
    write_pki(tmp_path, ["mine.example.com"])
    assert pki.serving[0].read_bytes() == certificate
    assert json.loads((tmp_path / "pki.json").read_text())["apiserver"]["hosts"] == ["mine.example.com"]


@pytest.mark.parametrize(
    ("leaf", "ca"), [("apiserver", "ca"), ("admin", "client-ca"), ("front-proxy-client", "front-proxy-ca")]
)
def test_each_certificate_verifies_under_its_own_authority_only(tmp_path: Path, leaf: str, ca: str) -> None:
    from cryptography import x509

    pki = write_pki(tmp_path, ["localhost"])
    certificate = x509.load_pem_x509_certificate(pki.certificate(leaf).read_bytes())
    for name in ("ca", "client-ca", "front-proxy-ca"):
        issuer = x509.load_pem_x509_certificate(pki.certificate(name).read_bytes())
        if name == ca:
            certificate.verify_directly_issued_by(issuer)
        else:
            with pytest.raises(ValueError, match="match"):
                certificate.verify_directly_issued_by(issuer)


def test_a_kubeconfig_holds_all_that_a_client_needs(tmp_path: Path) -> None:
    pki = write_pki(tmp_path, ["localhost"])
    certificate, key = (path.read_bytes() for path in pki.admin)
    path = tmp_path / "kubeconfig"
    write_kubeconfig(
        path, kubeconfig("https://localhost:6443", ca=pki.ca.read_bytes(), certificate=certificate, key=key)
    )
    written = json.loads(path.read_text())
    assert written["current-context"] == "admin@tetrapod"
    assert written["users"][0]["user"].keys() == {"client-certificate-data", "client-key-data"}
    assert path.stat().st_mode & 0o777 == 0o600
    ssl.create_default_context(cadata=pki.ca.read_text())


async def test_a_running_server_renews_expiring_certificates_and_keeps_its_authorities(tmp_path: Path) -> None:
    pki = write_pki(tmp_path, ["localhost"])
    before = contents(tmp_path)
    done = asyncio.Event()
    task = asyncio.create_task(
        renew_periodically(lambda: renew_leaves(pki, renew_before=366 * 86400), done.set, interval=0)
    )
    await asyncio.wait_for(done.wait(), 30)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    after = contents(tmp_path)
    leaves = {"apiserver", "admin", "front-proxy-client"}
    changed = {name for name in after if after[name] != before.get(name)} - {"pki.json"}
    assert {f"{leaf}.{end}" for leaf in leaves for end in ("crt", "key")} <= changed
    assert not [name for name in changed if name.endswith(("ca.crt", "ca.key", "sa.key"))]
    assert authority.hosts(pki.serving[0].read_bytes()) == ["localhost"]
    assert not renew_leaves(pki)
