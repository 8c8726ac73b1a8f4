"""Encryption at rest of a running server.

Resources in the file are encrypted, custom resources and wildcards included; health checks and metrics cover plugins;
an invalid configuration prevents the start.
"""

from __future__ import annotations

import json
import os
import sqlite3
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.definitions import definition, version
from support.failing_starts import failed_start
from support.kms import KmsPlugin
from support.server import Server, running
from support.waiting import until
from support.wire import Client

SECRET = b64encode(bytes([9]) * 32).decode()
KEYS = f"{{keys: [{{name: one, secret: {SECRET}}}]}}"
HEAD = "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n"
CRD = definition(
    "example.com", "Chest", version(schema={"type": "object", "properties": {"treasure": {"type": "string"}}})
)


@pytest.fixture(scope="module")
def plugin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KmsPlugin]:
    found = KmsPlugin(tmp_path_factory.mktemp("kms"))
    found.start()
    yield found
    found.stop()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, plugin: KmsPlugin) -> Iterator[Server]:
    directory = tmp_path_factory.mktemp("encrypted")
    config, tokens = directory / "encryption.yaml", directory / "tokens.csv"
    config.write_text(
        f"{HEAD}- resources: [secrets]\n  providers: [{{kms: {{apiVersion: v2, name: vault, "
        f"endpoint: {plugin.endpoint}}}}}]\n"
        f"- resources: ['*.example.com']\n  providers: [{{aescbc: {KEYS}}}]\n- resources: ['*.*']\n"
        f"  providers: [{{aesgcm: {KEYS}}}]\n"
    )
    tokens.write_text('admin-token,admin,u-admin,"system:masters"\n')
    with running(directory / "data", f"--encryption-provider-config={config}", f"--token-auth-file={tokens}") as found:
        yield found


@pytest.fixture
def client(server: Server) -> Iterator[Client]:
    with Client(server) as found:
        yield found


def stored(server: Server, prefix: str) -> dict[str, bytes]:
    with sqlite3.connect(server.data_dir / "tetrapod.db") as connection:
        rows = connection.execute(
            "SELECT c.key, r.value FROM current c JOIN revisions r USING (revision) WHERE c.key LIKE ?", (f"{prefix}%",)
        ).fetchall()
    connection.close()
    return dict(rows)


def test_secrets_custom_resources_and_other_objects_have_different_encryption(server: Server, client: Client) -> None:
    secret = {"metadata": {"name": "s"}, "stringData": {"treasure": "gold"}}
    assert client("POST", "/api/v1/namespaces/default/secrets", secret).status == 201
    assert client("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", CRD).status == 201
    chests = "/apis/example.com/v1/namespaces/default/chests"
    chest = {"apiVersion": "example.com/v1", "kind": "Chest", "metadata": {"name": "c"}, "treasure": "gold"}
    while (answer := client("POST", chests, chest)).status == 404:
        pass
    assert answer.status == 201, answer.body
    assert client("GET", f"{chests}/c").json["treasure"] == "gold"
    assert stored(server, "/registry/secrets/default/s")["/registry/secrets/default/s"].startswith(
        b"k8s:enc:kms:v2:vault:"
    )
    assert all(
        value.startswith(b"k8s:enc:aescbc:v1:one:") for value in stored(server, "/registry/example.com/").values()
    )
    everything = stored(server, "/registry/")
    assert len(everything) > 100
    plain = [key for key, value in everything.items() if not value.startswith(b"k8s:enc:")]
    assert [key for key in plain if key != "/registry/ranges/servicenodeports"] == []


def test_allocated_node_ports_are_stored_plainly_as_by_kube_apiserver(server: Server, client: Client) -> None:
    service = {"metadata": {"name": "s"}, "spec": {"type": "NodePort", "ports": [{"port": 80}]}}
    assert client("POST", "/api/v1/namespaces/default/services", service).status == 201
    ranges = stored(server, "/registry/ranges/")
    assert list(ranges) == ["/registry/ranges/servicenodeports"]
    assert json.loads(ranges["/registry/ranges/servicenodeports"])["kind"] == "RangeAllocation"


def test_plugins_are_reported_by_health_and_metrics(server: Server, client: Client) -> None:
    assert "[+]kms-providers ok" in client("GET", "/readyz?verbose").body.decode()
    assert "kms-providers" not in client("GET", "/livez?verbose").body.decode()
    metrics = client("GET", "/metrics").body.decode()
    for name in (
        (
            'apiserver_storage_transformation_operations_total{resource="secrets",status="OK",'
            'transformation_type="to_storage",'
        ),
        'apiserver_storage_transformation_duration_seconds_count{transformation_type="from_storage",',
        'apiserver_envelope_encryption_key_id_hash_total{apiserver_id_hash="sha256:',
        'apiserver_envelope_encryption_key_id_hash_status_last_timestamp_seconds{apiserver_id_hash="sha256:',
        'apiserver_envelope_encryption_dek_source_cache_size{provider_name="vault"}',
        (
            'apiserver_envelope_encryption_kms_operations_latency_seconds_count{grpc_status_code="OK",'
            'method_name="/v2.KeyManagementService/Status"'
        ),
        'apiserver_encryption_config_controller_last_config_info{apiserver_id_hash="sha256:',
    ):
        assert name in metrics, name


@pytest.mark.parametrize(
    ("flags", "text"),
    [
        (("--encryption-provider-config-automatic-reload",), "must be set with --encryption-provider-config"),
        (("--encryption-provider-config=/nowhere",), 'file "/nowhere": open /nowhere: no such file or directory'),
    ],
)
def test_a_server_does_not_start_with_a_configuration_that_cannot_be_used(
    tmp_path: Path, flags: tuple[str, ...], text: str
) -> None:
    failed = failed_start(tmp_path, *flags)
    assert failed.code == 1
    assert failed.stderr.startswith("Error: ") and text in failed.stderr


def test_requests_are_answered_while_a_changed_file_cannot_be_read(tmp_path: Path) -> None:
    """A FIFO takes the place of a file on a network file system that does not answer."""
    config, tokens, fifo = tmp_path / "encryption.yaml", tmp_path / "tokens.csv", tmp_path / "fifo"
    config.write_text(f"{HEAD}- resources: [secrets]\n  providers: [{{aescbc: {KEYS}}}]\n")
    content = config.read_bytes()
    tokens.write_text('admin-token,admin,u-admin,"system:masters"\n')
    flags = ("--encryption-provider-config-automatic-reload=true", f"--token-auth-file={tokens}")

    def writer() -> int | None:
        try:
            return os.open(config, os.O_WRONLY | os.O_NONBLOCK)
        except OSError:  # it has no reader yet
            return None

    with running(tmp_path / "data", f"--encryption-provider-config={config}", *flags) as server:
        os.mkfifo(fifo)
        fifo.replace(config)
        descriptor = until(writer, lambda descriptor: descriptor is not None)
        assert descriptor is not None
        try:
            with Client(server) as client:
                assert client("GET", "/api/v1/namespaces/default/secrets").status == 200
        finally:
            os.write(descriptor, content)
            os.close(descriptor)


METRICS = "apiserver_encryption_config_controller_"
RELOAD_HELPS = {
    f"# HELP {METRICS}automatic_reloads_total [ALPHA] Total number of reload successes and failures of encryption "
    "configuration split by apiserver identity.",
    f"# HELP {METRICS}automatic_reload_last_timestamp_seconds [ALPHA] Timestamp of the last successful or failed "
    "automatic reload of encryption configuration split by apiserver identity.",
    f"# HELP {METRICS}last_config_info [ALPHA] Information about the last applied encryption configuration with hash "
    "as label, split by apiserver identity.",
}


def test_a_failed_reload_is_repeated_until_the_file_is_valid(tmp_path: Path) -> None:
    config, tokens = tmp_path / "encryption.yaml", tmp_path / "tokens.csv"
    config.write_text(f"{HEAD}- resources: [secrets]\n  providers: [{{aescbc: {KEYS}}}]\n")
    valid = config.read_text()
    tokens.write_text('admin-token,admin,u-admin,"system:masters"\n')
    flags = ("--encryption-provider-config-automatic-reload=true", f"--token-auth-file={tokens}")
    with (
        running(tmp_path / "data", f"--encryption-provider-config={config}", *flags) as server,
        Client(server) as client,
    ):

        def count(status: str) -> float:
            lines = client("GET", "/metrics").body.decode().splitlines()
            name = "apiserver_encryption_config_controller_automatic_reloads_total"
            return sum(float(line.split()[-1]) for line in lines if line.startswith(name) and f'"{status}"' in line)

        names = [line.split()[0] for line in client("GET", "/readyz?verbose").body.decode().splitlines()]
        first = names.index("[+]etcd-readiness")
        assert names[first + 1 : first + 4] == [
            "[+]kms-providers",
            "[+]informer-sync",
            "[+]poststarthook/start-encryption-provider-config-automatic-reload",
        ]
        config.write_text("invalid")
        until(lambda: count("failure") >= 4)
        assert client("GET", "/healthz/kms-providers").status == 200
        config.write_text(valid + "# corrected\n")
        until(lambda: count("success") == 1)
        page = client("GET", "/metrics").body.decode()
        assert {line for line in page.splitlines() if line.startswith(f"# HELP {METRICS}")} == RELOAD_HELPS
