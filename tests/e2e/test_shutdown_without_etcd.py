"""SIGTERM ends each of the four services cleanly and in time, also while etcd is down or hangs and requests wait for
it.
"""

from __future__ import annotations

import json
import subprocess
import threading
import time
from pathlib import Path

import pytest

from support.etcd import Etcd
from support.services import NAMES, Services, running_services

BUDGET = 25  # seconds; kubelet's default grace period is thirty


def ask_in_vain(services: Services) -> None:
    """Send a write that etcd will not answer."""
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "never"}}
    argv = ["kubectl", "--kubeconfig", str(services.kubeconfig), "create", "-f", "-", "--request-timeout=30s"]
    subprocess.run(argv, input=json.dumps(body), text=True, capture_output=True, check=False)


@pytest.mark.timeout(240)
@pytest.mark.parametrize("how", ["dead", "silent"])
def test_each_service_stops_within_its_grace_period(tmp_path: Path, how: str) -> None:
    with running_services(tmp_path) as services:
        assert isinstance(services.etcd, Etcd)
        watching = subprocess.Popen(
            ["kubectl", "--kubeconfig", str(services.kubeconfig), "get", "configmaps", "-n", "default", "--watch"],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        assert watching.stdout is not None
        assert watching.stdout.readline()  # wait until the watch is open
        services.etcd.stop() if how == "dead" else services.etcd.pause()
        stuck = threading.Thread(target=ask_in_vain, args=(services,))
        stuck.start()
        processes = dict(services.processes)
        began = time.monotonic()
        try:
            for process in processes.values():
                process.terminate()
            codes = {
                name: process.wait(max(0.1, began + BUDGET - time.monotonic())) for name, process in processes.items()
            }
        finally:
            stuck.join(60)
            watching.terminate()
            watching.wait(30)
            watching.stdout.close()
            if how == "silent":
                services.etcd.resume()
        assert codes == dict.fromkeys(NAMES, 0)
        for name in NAMES:
            assert "Traceback" not in services.log(name).read_text()
