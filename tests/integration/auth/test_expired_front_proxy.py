"""The certificate with which the aggregator authenticates at the other services expires, and is renewed later."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from support.services import Services, running_services
from support.waiting import until
from support.wire import Answer, Client
from tetrapod.generic.certificates.authority import Authority
from tetrapod.generic.certificates.pki import PRIVATE, PUBLIC, write_file

pytestmark = [pytest.mark.long, pytest.mark.timeout(300)]

TOKENS = Path(__file__).parents[2] / "contract" / "tokens.csv"
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


def let_expire(services: Services, seconds: float) -> None:
    """Replace the front-proxy certificate of the aggregator by one that expires after some seconds."""
    ca, directory = services.certs / "ca", services.certs / "aggregator"
    authority = Authority.load((ca / "front-proxy-ca.crt").read_bytes(), (ca / "front-proxy-ca.key").read_bytes())
    certificate, key = authority.issue_client("front-proxy-client", (), timedelta(seconds=seconds))
    write_file(directory / "front-proxy-client.key", key, PRIVATE)
    write_file(directory / "front-proxy-client.crt", certificate, PUBLIC)


def test_clients_are_asked_to_retry_until_the_certificate_is_renewed(tmp_path: Path) -> None:
    with (
        running_services(tmp_path, auth=(f"--token-auth-file={TOKENS}",)) as services,
        Client(services, "admin-token") as client,
    ):
        let_expire(services, 6)
        statuses = set()

        def answer() -> Answer:
            answered = client("GET", CONFIG_MAPS)
            statuses.add(answered.status)
            return answered

        rejected = until(answer, lambda answered: answered.status != 200)
        assert (rejected.status, rejected.headers.get("retry-after")) == (503, "1")
        assert rejected.json["message"].startswith("client certificate of the aggregator: ")
        assert "x509: certificate has expired or is not yet valid: current time" in rejected.json["message"]
        assert not any(name.startswith("x-tetrapod-") for name in rejected.headers)
        services.issue_certificates()
        until(answer, lambda answered: answered.status == 200)
        assert statuses == {200, 503}
