"""Where a server says that it is."""

from __future__ import annotations

import subprocess
from pathlib import Path

from support.door import Door
from support.server import command, environment, running

ADDRESS = "192.0.2.2"


def test_the_service_kubernetes_leads_to_the_advertised_address(tmp_path: Path) -> None:
    with running(tmp_path, f"--advertise-address={ADDRESS}") as server:
        door = Door(server.kubeconfig, url=server.url)
        endpoints = door.until(lambda r: r.status == 200, "GET", "/api/v1/namespaces/default/endpoints/kubernetes").body
        slices = door.call("GET", "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes").body
        assert [a["ip"] for a in endpoints["subsets"][0]["addresses"]] == [ADDRESS]
        assert slices["endpoints"][0]["addresses"] == [ADDRESS]
        assert ADDRESS in server.kubeconfig.read_text()
        assert door.call("DELETE", "/api/v1/namespaces/default/services/kubernetes").status == 200
        assert door.until(lambda r: r.status == 200, "GET", "/api/v1/namespaces/default/services/kubernetes").body["spec"]["clusterIP"]


def test_what_is_no_address_is_refused_at_the_start(tmp_path: Path) -> None:
    argv = command("up", f"--data-dir={tmp_path}/data", "--advertise-address=nowhere")
    ended = subprocess.run(argv, env=environment(), capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 2
    assert "'--advertise-address': failed to parse IP: \"nowhere\"" in ended.stderr
