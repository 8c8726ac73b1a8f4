"""In four services, the reviews that the auth service answers are counted by the services that ask."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from support.https_client import HttpsClient
from support.services import running_services
from support.wire import Client

SECRETS = "/api/v1/namespaces/default/secrets"


def test_token_and_access_reviews_are_counted_by_status_code(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens.csv"
    tokens.write_text("reader-token,reader,1\n")
    with running_services(tmp_path, auth=("--token-auth-file", str(tokens))) as services:
        with closing(Client(services, "reader-token")) as reader:
            assert reader("GET", SECRETS).status == 403
        text = HttpsClient(services.kubeconfig).call("GET", "/metrics").body
    for subsystem in ("authn", "authz"):
        name = f"apiserver_delegated_{subsystem}_request"
        counts = [line for line in text.splitlines() if line.startswith(f'{name}_total{{code="201"}}')]
        assert counts and float(counts[0].split()[-1]) >= 1, name
        assert f"# HELP {name}_total [ALPHA] Number of HTTP requests partitioned by status code." in text
        assert f'{name}_duration_seconds_bucket{{code="201",le="0.25"}}' in text
