"""Tests of the four services' certificate directories.

Valid files are kept and invalid ones are replaced. Each private key is only in the directory that needs it.
"""

from __future__ import annotations

from pathlib import Path

from tetrapod.generic.certificates import authority
from tetrapod.generic.certificates.services import DIRECTORIES, SERVICES, write_service_certificates

YEAR = 366 * 86400


def contents(out: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(out)): path.read_bytes()
        for path in sorted(out.rglob("*"))
        if path.is_file() and path.name != "pki.json"
    }


def hosts(out: Path, name: str) -> set[str]:
    return set(authority.hosts((out / f"{name}.crt").read_bytes()))


def test_a_second_run_changes_nothing(tmp_path: Path) -> None:
    write_service_certificates(tmp_path, ["localhost"])
    before = contents(tmp_path)
    write_service_certificates(tmp_path, ["localhost"])
    assert contents(tmp_path) == before


def test_private_keys_are_only_in_the_directories_that_need_them(tmp_path: Path) -> None:
    write_service_certificates(tmp_path, ["localhost"])
    keys = {
        directory: {path.stem for path in (tmp_path / directory).glob("*.key")}
        for directory in DIRECTORIES
        if directory != "admin"
    }
    own = {"tls", "client", "etcd-client"}
    assert keys == {
        "ca": {"ca", "client-ca", "front-proxy-ca", "etcd-ca", "apiserver", "admin", "front-proxy-client", "sa"},
        "monitoring": {"client"},
        "aggregator": own | {"front-proxy-client"},
        "core": own,
        "extensions": own,
        "auth": own | {"sa"},
        "etcd": {"tls", "peer", "client"},
    }
    assert all(path.stat().st_mode & 0o077 == 0 for path in tmp_path.rglob("*.key"))


def test_expiring_certificates_are_renewed_by_the_same_authorities(tmp_path: Path) -> None:
    write_service_certificates(tmp_path, ["localhost"])
    before = contents(tmp_path)
    write_service_certificates(tmp_path, ["localhost"], renew_before=YEAR)
    changed = {name for name, data in contents(tmp_path).items() if data != before[name]}
    kept = {name for name in before if name.endswith(("ca.crt", "ca.key", "sa.key", "sa.pub"))}
    assert changed == set(before) - kept


def test_names_of_services_and_members_are_added(tmp_path: Path) -> None:
    write_service_certificates(tmp_path, ["localhost"])
    write_service_certificates(
        tmp_path, ["localhost"], service_hosts=["prod-{service}", "{service}.ns.svc"], etcd_hosts=["*.peers"]
    )
    for service in SERVICES:
        assert {f"prod-{service}", f"{service}.ns.svc", "localhost"} <= hosts(tmp_path / service, "tls")
    assert {"etcd", "prod-etcd", "*.peers"} <= hosts(tmp_path / "etcd", "tls") & hosts(tmp_path / "etcd", "peer")


def test_certificates_of_another_authority_are_replaced(tmp_path: Path) -> None:
    write_service_certificates(tmp_path, ["localhost"])
    for path in (tmp_path / "ca").iterdir():
        path.unlink()
    before = contents(tmp_path)
    write_service_certificates(tmp_path, ["localhost"])
    after = contents(tmp_path)
    assert all(after[name] != data for name, data in before.items())
    ca = authority.Authority.load(
        (tmp_path / "ca/etcd-ca.crt").read_bytes(), (tmp_path / "ca/etcd-ca.key").read_bytes()
    )
    assert ca.issued((tmp_path / "core/etcd-client.crt").read_bytes())


def test_unreadable_files_are_created_again(tmp_path: Path) -> None:
    write_service_certificates(tmp_path, ["localhost"])
    broken = tmp_path / "core" / "tls.crt"
    broken.write_text("no certificate")
    write_service_certificates(tmp_path, ["localhost"])
    assert "core" in hosts(tmp_path / "core", "tls")


def test_service_certificates_name_only_their_service(tmp_path: Path) -> None:
    """RBAC grants each service its rights by user name; no service certificate is in an administrators' group."""
    write_service_certificates(tmp_path, ["localhost"])
    groups = {service: authority.groups((tmp_path / service / "client.crt").read_bytes()) for service in SERVICES}
    assert groups == {service: ["system:tetrapod:services"] for service in SERVICES}


def test_certificates_of_other_groups_are_created_again(tmp_path: Path) -> None:
    """`tetrapod certs` repairs an older installation, in which the services were administrators."""
    write_service_certificates(tmp_path, ["localhost"])
    clients = authority.Authority.load(
        (tmp_path / "ca/client-ca.crt").read_bytes(), (tmp_path / "ca/client-ca.key").read_bytes()
    )
    certificate, key = clients.issue_client("system:tetrapod:core", ("system:masters", "system:tetrapod:services"))
    (tmp_path / "core/client.crt").write_bytes(certificate)
    (tmp_path / "core/client.key").write_bytes(key)
    write_service_certificates(tmp_path, ["localhost"])
    assert authority.groups((tmp_path / "core/client.crt").read_bytes()) == ["system:tetrapod:services"]
