"""`--secure-port=0`: the kernel chooses a port, and everything that names the server's port has it."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from support.etcd import Etcd, etcd_36
from support.https_client import HttpsClient
from support.server import command, end, environment
from support.waiting import until

TAKEN = "provided IP is already allocated"
FLAGS = ("--secure-port=0", "--advertise-address=192.0.2.7")


@pytest.mark.parametrize("workers", [1, 2])
def test_the_endpoint_of_kubernetes_has_the_port_that_was_chosen(tmp_path: Path, workers: int) -> None:
    etcd, log = Etcd(etcd_36(), tmp_path / "etcd"), tmp_path / "log"
    flags = [*FLAGS, f"--data-dir={tmp_path / 'data'}"]
    if workers > 1:
        etcd.start()
        flags += [f"--workers={workers}", f"--etcd-servers={etcd.url}"]
    with log.open("wb") as out:
        process = subprocess.Popen(command("up", *flags), stdout=out, stderr=out, env=environment())
    try:
        found = until(
            lambda: re.search(r"ready: https://192\.0\.2\.7:([1-9]\d*)", log.read_text()), description="the first line"
        )
        assert found is not None
        client = HttpsClient(tmp_path / "data/kubeconfig", f"https://127.0.0.1:{found[1]}")
        reply = client.until(
            lambda reply: reply.status == 200, "GET", "/api/v1/namespaces/default/endpoints/kubernetes"
        )
        assert [port["port"] for subset in reply.body["subsets"] for port in subset["ports"]] == [int(found[1])]
        issuer = client.call("GET", "/.well-known/openid-configuration").body["jwks_uri"]
        assert issuer == f"https://192.0.2.7:{found[1]}/openid/v1/jwks"
    finally:
        end(process)
        if workers > 1:
            etcd.stop()
    warnings = re.findall(r"^[WE]\d{4}.*(?:Invalid|port).*$", log.read_text(), re.MULTILINE)
    # Upstream's servers too report it if another one is just creating the Service.
    assert [line for line in warnings if "bootstrap-controller: " not in line or not line.endswith(TAKEN)] == []
