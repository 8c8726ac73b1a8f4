"""Service account tokens that a plugin signs (--service-account-signing-endpoint)."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.failing_starts import start_error
from support.https_client import HttpsClient, Reply
from support.server import free_port, running
from support.service_accounts import wait_for_service_account
from support.services import running_services
from support.token_signer import TokenSigner
from support.waiting import until

ACCOUNT = "/api/v1/namespaces/default/serviceaccounts/default"
METRICS = "apiserver_externaljwt"


class Signed:
    """A server whose tokens a plugin signs."""

    def __init__(self, client: HttpsClient, plugin: TokenSigner) -> None:
        self.client, self.plugin = client, plugin

    def request(self, seconds: int = 3600, **spec: Any) -> Reply:
        return self.client.call("POST", f"{ACCOUNT}/token", {"spec": {"expirationSeconds": seconds, **spec}})

    def token(self) -> str:
        answer = self.request()
        assert answer.status == 201, answer
        return str(answer.body["status"]["token"])

    def review(self, token: str) -> Any:
        body = {"spec": {"token": token}}
        return self.client.call("POST", "/apis/authentication.k8s.io/v1/tokenreviews", body).body["status"]

    def key_ids(self) -> list[str]:
        return [key["kid"] for key in self.client.call("GET", "/openid/v1/jwks").body["keys"]]

    def metric(self, sample: str) -> float:
        for line in self.client.call("GET", "/metrics").body.splitlines():
            if line.startswith(f"{METRICS}_{sample} "):
                return float(line.rpartition(" ")[2])
        return 0.0


@pytest.fixture(scope="module")
def running_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Signed]:
    directory = tmp_path_factory.mktemp("signer")
    with TokenSigner(directory / "signer.sock") as plugin:
        flag = f"--service-account-signing-endpoint={plugin.endpoint}"
        with running(directory / "data", flag) as server:
            client = HttpsClient(server.kubeconfig)
            wait_for_service_account(client.call)
            yield Signed(client, plugin)


@pytest.fixture
def signed(running_server: Signed) -> Iterator[Signed]:
    """The server of this module. The plugin is restored after each test."""
    yield running_server
    running_server.plugin.restore()


def claims_of(token: str) -> Any:
    return json.loads(base64.urlsafe_b64decode(token.split(".")[1] + "=="))


def test_a_token_is_signed_by_the_plugin_and_accepted(signed: Signed) -> None:
    token = signed.token()
    assert claims_of(token) == signed.plugin.signed[-1]
    review = signed.review(token)
    assert review["authenticated"] is True
    assert review["user"]["username"] == "system:serviceaccount:default:default"
    header, payload, signature = token.split(".")
    assert signed.review(f"{header}.{payload}.{signature[::-1]}").get("authenticated") is not True


def test_lifetimes_are_limited_by_the_plugin(signed: Signed) -> None:
    answer = signed.request(90_000)
    assert answer.status == 201
    assert answer.warnings == ['299 - "requested expiration of 90000 seconds shortened to 7200 seconds"']
    claims = claims_of(answer.body["status"]["token"])
    assert claims["exp"] - claims["iat"] == 7200


def test_discovery_shows_the_published_keys_of_the_plugin(signed: Signed) -> None:
    plugin = signed.plugin
    plugin.add_key("old")
    plugin.hidden.add("old")
    plugin.add_key("new")
    plugin.signing = "new"
    token = signed.token()  # the unknown key of the new token makes the keys be fetched again
    assert signed.review(token)["authenticated"] is True
    assert signed.key_ids() == ["first", "new"]
    configuration = signed.client.call("GET", "/.well-known/openid-configuration").body
    assert configuration["id_token_signing_alg_values_supported"] == ["ES256"]
    plugin.signing = "old"
    assert signed.request().message == (
        "Internal error occurred: failed to generate token: while validating header: key used for signing JWT (kid: "
        "old) is excluded from OIDC discovery docs"
    )


def test_tokens_of_a_removed_key_become_invalid(signed: Signed) -> None:
    plugin = signed.plugin
    plugin.add_key("removed")
    plugin.signing = "removed"
    token = signed.token()
    assert signed.review(token)["authenticated"] is True
    del plugin.keys["removed"]
    plugin.add_key("other")
    plugin.signing = "other"
    signed.token()
    review = signed.review(token)
    assert review.get("authenticated") is not True
    assert "invalid signature, no keys found" in review["error"]


@pytest.mark.parametrize(
    ("header", "error"),
    [
        ({"typ": "jwt"}, "while validating header: bad type"),
        ({"kid": ""}, "while validating header: key id missing"),
        ({"kid": "k" * 1025}, "while validating header: key id longer than 1 kb"),
        ({"alg": "HS256"}, 'while validating header: bad signing algorithm "HS256"'),
        ({"x5t": "a"}, 'while validating header: while parsing header JSON: json: unknown field "x5t"'),
    ],
)
def test_invalid_headers_are_rejected(signed: Signed, header: dict[str, str], error: str) -> None:
    signed.plugin.header = header
    answer = signed.request()
    assert (answer.status, answer.message) == (500, f"Internal error occurred: failed to generate token: {error}")


def test_a_failure_of_the_plugin_is_reported_and_counted(signed: Signed) -> None:
    signed.token()
    before = signed.metric('sign_request_total{code="PermissionDenied"}')
    signed.plugin.rejection = "not today"
    answer = signed.request()
    assert answer.message == (
        "Internal error occurred: failed to generate token: while signing jwt: rpc error: code = PermissionDenied desc "
        "= not today"
    )
    assert signed.metric('sign_request_total{code="PermissionDenied"}') == before + 1
    assert signed.metric('sign_request_total{code="OK"}') >= 1
    assert signed.metric('fetch_keys_request_total{code="OK"}') >= 1
    assert signed.metric("fetch_keys_data_timestamp") == signed.plugin.timestamp
    assert signed.metric('request_duration_seconds_count{code="OK",method="/v1.ExternalJWTSigner/Metadata"}') == 1


def secret_data(client: HttpsClient) -> Any:
    """Create a Secret for a token, and return its data once the controller has written it."""
    secret = {
        "metadata": {"name": "legacy", "annotations": {"kubernetes.io/service-account.name": "default"}},
        "type": "kubernetes.io/service-account-token",
    }
    path = "/api/v1/namespaces/default/secrets"
    assert client.call("POST", path, secret).status == 201
    return until(lambda: client.call("GET", f"{path}/legacy").body.get("data"))


def test_secrets_get_no_token(signed: Signed) -> None:
    assert secret_data(signed.client).keys() == {"ca.crt", "namespace"}


def test_keys_are_fetched_again_by_the_hint_over_an_abstract_socket(tmp_path: Path) -> None:
    with TokenSigner(tmp_path, abstract=f"signer-{free_port()}") as plugin:
        plugin.refresh = 1
        with running(tmp_path / "data", f"--service-account-signing-endpoint={plugin.endpoint}") as server:
            signed = Signed(HttpsClient(server.kubeconfig), plugin)
            plugin.add_key("second")
            until(signed.key_ids, lambda ids: ids == ["first", "second"])


@pytest.mark.long
def test_four_services_use_the_plugin_of_auth(tmp_path: Path) -> None:
    with TokenSigner(tmp_path / "signer.sock") as plugin:
        flags = (f"--service-account-signing-endpoint={plugin.endpoint}",)
        with running_services(tmp_path / "services", auth=flags) as services:
            signed = Signed(HttpsClient(services.kubeconfig), plugin)
            wait_for_service_account(signed.client.call)
            token = signed.token()
            assert claims_of(token) == plugin.signed[-1]
            assert signed.review(token)["authenticated"] is True
            assert signed.key_ids() == ["first"]
            assert secret_data(signed.client).keys() == {"ca.crt", "namespace"}


@pytest.mark.parametrize(
    ("flags", "error"),
    [
        (
            ("--service-account-signing-endpoint=/a", "--service-account-signing-key-file=b"),
            "service-account-signing-key-file and service-account-signing-endpoint are mutually exclusive and cannot "
            "be set at the same time",
        ),
        (
            ("--service-account-signing-endpoint=/a", "--service-account-key-file=b"),
            "can't set `--service-account-signing-key-file` and/or `--service-account-key-file` with "
            "`--service-account-signing-endpoint` (They are mutually exclusive)",
        ),
        (
            ("--service-account-signing-endpoint=@a/b",),
            'invalid value "@a/b" passed for `--service-account-signing-endpoint`, when prefixed with @ must be a '
            "valid abstract socket name",
        ),
    ],
)
def test_conflicting_flags_end_the_start(tmp_path: Path, flags: tuple[str, ...], error: str) -> None:
    assert start_error(tmp_path, *flags) == f"Error: {error}"


FETCHING = (
    "Error: while setting up external-jwt-signer: while initially filling key cache: while performing initial cache "
    "fill: while fetching token verification keys: "
)


@pytest.mark.long
@pytest.mark.parametrize(
    ("attributes", "flags", "error"),
    [
        ({"refresh": 0}, (), f"{FETCHING}found invalid refresh hint (0s)"),
        ({"keys": {}}, (), f"{FETCHING}found no keys"),
        ({"timestamp": None}, (), f"{FETCHING}invalid data timestamp: proto: invalid nil Timestamp"),
        (
            {"max_lifetime": 599},
            (),
            "Error: max token life supported by external-jwt-signer (599s) is less than acceptable (min 600s)",
        ),
        (
            {},
            ("--service-account-max-token-expiration=3h",),
            "Error: service-account-max-token-expiration cannot be set longer than the token expiration supported by "
            "service-account-signing-endpoint: 3h0m0s > 2h0m0s",
        ),
    ],
)
def test_unusable_plugins_end_the_start(
    tmp_path: Path, attributes: dict[str, Any], flags: tuple[str, ...], error: str
) -> None:
    with TokenSigner(tmp_path / "signer.sock") as plugin:
        for name, value in attributes.items():
            setattr(plugin, name, value)
        assert start_error(tmp_path, f"--service-account-signing-endpoint={plugin.endpoint}", *flags) == error
