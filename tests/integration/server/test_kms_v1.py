"""KMS v1 plugins: a server with the feature gate `KMSv1` encrypts with them, and reports their health and metrics."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from support.kms_v1 import KmsV1Plugin
from support.server import Server, running
from support.wire import Client

SECRETS = "/api/v1/namespaces/default/secrets"


def configuration(directory: Path, plugin: KmsV1Plugin) -> Path:
    path = directory / "encryption.yaml"
    path.write_text(
        "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n"
        f"- resources: [secrets]\n  providers: [{{kms: {{name: vault, endpoint: '{plugin.endpoint}'}}}}]\n"
    )
    return path


def stored(server: Server, key: str) -> bytes:
    with sqlite3.connect(server.data_dir / "tetrapod.db") as connection:
        (value,) = connection.execute(
            "SELECT r.value FROM current c JOIN revisions r USING (revision) WHERE c.key = ?", (key,)
        ).fetchone()
    connection.close()
    return bytes(value)


def test_kms_v1_encrypts_and_another_start_decrypts(tmp_path: Path) -> None:
    plugin = KmsV1Plugin(tmp_path)
    plugin.start()
    tokens = tmp_path / "tokens.csv"
    tokens.write_text('admin-token,admin,u-admin,"system:masters"\n')
    flags = (
        f"--encryption-provider-config={configuration(tmp_path, plugin)}",
        "--feature-gates=KMSv1=true",
        f"--token-auth-file={tokens}",
    )
    try:
        with running(tmp_path / "data", *flags) as server, Client(server) as client:
            secret = {"metadata": {"name": "s"}, "stringData": {"treasure": "gold"}}
            assert client("POST", SECRETS, secret).status == 201
            value = stored(server, "/registry/secrets/default/s")
            prefix = b"k8s:enc:kms:v1:vault:"
            assert value.startswith(prefix)
            assert b"Z29sZA" not in value
            assert int.from_bytes(value[len(prefix) : len(prefix) + 2], "big") == 12 + 32 + 16
        plugin.calls["Decrypt"] = 0
        with running(tmp_path / "data", *flags) as server, Client(server) as client:
            assert client("GET", f"{SECRETS}/s").json["data"] == {"treasure": "Z29sZA=="}
            assert plugin.calls["Decrypt"] > 0
            assert client("GET", "/healthz/kms-provider-0").body == b"ok"
            assert "[+]kms-provider-0 ok" in client("GET", "/readyz?verbose").body.decode()
            assert "kms-provider" not in client("GET", "/livez?verbose").body.decode()
            metrics = client("GET", "/metrics").body.decode()
            for name in (
                'apiserver_envelope_encryption_dek_cache_inter_arrival_time_seconds_count{transformation_type="from_storage"}',
                "apiserver_envelope_encryption_dek_cache_fill_percent 0.00",
                'transformer_prefix="k8s:enc:kms:v1:vault:"',
            ):
                assert name in metrics, name
    finally:
        plugin.stop()
