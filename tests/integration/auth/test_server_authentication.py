"""Authentication configuration of `tetrapod up`: issuers, anonymous paths, reloading, and configurations rejected at
start.
"""

from __future__ import annotations

import json
import ssl
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest
import yaml

from support.failing_starts import failed_start
from support.issuer import AUDIENCE, issuer
from support.server import running
from support.waiting import until

REVIEW = "/apis/authentication.k8s.io/v1/selfsubjectreviews"


def ask(url: str, path: str, token: str = "", body: Any = None) -> tuple[int, Any]:
    headers = {"content-type": "application/json"} | ({"authorization": f"Bearer {token}"} if token else {})
    request = urllib.request.Request(url + path, None if body is None else json.dumps(body).encode(), headers)
    try:
        with urllib.request.urlopen(request, context=ssl._create_unverified_context(), timeout=30) as answer:
            text = answer.read()
            return answer.status, json.loads(text) if text.startswith(b"{") else text.decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def whoami(url: str, token: str) -> Any:
    status, review = ask(url, REVIEW, token, {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"})
    return review["status"]["userInfo"] if status == 201 else status


def write(path: Path, **config: Any) -> None:
    path.write_text(
        yaml.safe_dump({"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthenticationConfiguration", **config})
    )


def authenticator(url: str, ca: str, prefix: str) -> dict[str, Any]:
    about = {"url": url, "audiences": [AUDIENCE], "certificateAuthority": ca}
    return {"issuer": about, "claimMappings": {"username": {"claim": "sub", "prefix": prefix}}}


def test_issuers_and_anonymous_paths_follow_changes_of_the_file(tmp_path: Path) -> None:
    file = tmp_path / "authentication.yaml"
    with issuer() as one, issuer() as two:
        anonymous = {"enabled": True, "conditions": [{"path": "/livez"}, {"path": "/readyz"}]}
        write(file, jwt=[authenticator(one.url, one.ca, "one:")], anonymous=anonymous)
        with running(tmp_path / "data", "--authentication-config", str(file)) as server:
            assert ask(server.url, "/livez")[0] == 200
            assert ask(server.url, "/livez/ping")[0] == 401
            assert ask(server.url, "/version")[0] == 401
            jane = until(lambda: whoami(server.url, one.token()), lambda found: found != 401)
            assert jane == {"username": "one:jane", "groups": ["system:authenticated"]}
            assert whoami(server.url, two.token()) == 401
            assert whoami(server.url, one.token(aud="another")) == 401

            # the invalid file is rejected, and the former one stays in effect
            write(file, jwt=[authenticator("http://not-secure", one.ca, "")], anonymous=anonymous)
            until(
                lambda: ask(server.url, "/livez") and (tmp_path / "data/server.log").read_text(),
                lambda log: "must be https" in log,
            )
            assert whoami(server.url, one.token())["username"] == "one:jane"

            write(file, jwt=[authenticator(two.url, two.ca, "two:")], anonymous=anonymous)
            until(lambda: whoami(server.url, two.token()), lambda found: found != 401)
            assert whoami(server.url, one.token()) == 401


def test_an_issuer_can_be_configured_by_flags(tmp_path: Path) -> None:
    ca = tmp_path / "ca.crt"
    with issuer() as one:
        ca.write_text(one.ca)
        flags = {
            "issuer-url": one.url,
            "client-id": AUDIENCE,
            "ca-file": str(ca),
            "groups-claim": "roles",
            "groups-prefix": "g:",
            "required-claim": "tier=a,b",
        }
        with running(tmp_path / "data", *(f"--oidc-{name}={value}" for name, value in flags.items())) as server:
            token = one.token(roles=["x"], tier="a,b")
            found = until(lambda: whoami(server.url, token), lambda found: found != 401)
            assert found == {"username": f"{one.url}#jane", "groups": ["g:x", "system:authenticated"]}
            assert whoami(server.url, one.token(tier="a")) == 401
            assert ask(server.url, "/version")[0] == 200


BOTH = "authentication-config file and oidc-* flags are mutually exclusive"
ANONYMOUS = (
    "--anonymous-auth flag cannot be set when anonymous field is configured in authentication configuration file"
)


@pytest.mark.long
@pytest.mark.parametrize(
    ("flags", "text"),
    [
        (
            ["--oidc-client-id=x"],
            "oidc-issuer-url and oidc-client-id must be specified together when any oidc-* flags are set",
        ),
        (
            ["--oidc-issuer-url=https://x", "--oidc-client-id=x", "--oidc-signing-algs=HS256"],
            'oidc: unsupported signing alg: "HS256"',
        ),
        (
            ["--oidc-issuer-url=https://x", "--oidc-client-id=x", "--oidc-ca-file=/nope"],
            "open /nope: no such file or directory",
        ),
        (["--oidc-issuer-url=https://x", "--authentication-config=FILE"], BOTH),
        (
            ["--authentication-config=/nope"],
            'failed to load authentication configuration from file "/nope": open /nope: no such file or directory',
        ),
        (["--authentication-config=FILE", "--anonymous-auth=false"], f"anonymous: Forbidden: {ANONYMOUS}"),
        (
            ["--oidc-issuer-url=http://x", "--oidc-client-id=x"],
            (
                'invalid authentication configuration: jwt[0].issuer.url: Invalid value: "http://x": '
                "URL scheme must be https"
            ),
        ),
    ],
)
def test_an_invalid_configuration_is_reported_at_start_in_one_line(tmp_path: Path, flags: list[str], text: str) -> None:
    file = tmp_path / "authentication.yaml"
    write(file, anonymous={"enabled": True})
    failed = failed_start(tmp_path / "data", *(flag.replace("FILE", str(file)) for flag in flags))
    assert (failed.code, failed.error) == (1, f"Error: {text}")
