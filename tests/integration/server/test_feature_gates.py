"""--feature-gates, tested by the effects on clients."""

from __future__ import annotations

from pathlib import Path

from integration.server.test_invalid_configuration import complaint
from support.https_client import HttpsClient
from support.server import running

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
WATCH_LIST = "/api/v1/namespaces?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=1"
DISABLED = "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled"


def test_disabled_gates_have_their_effects(tmp_path: Path) -> None:
    off = ("APIResponseCompression", "StorageVersionHash", "WatchList")
    gates = ",".join(f"{name}=false" for name in off)
    with running(tmp_path, f"--feature-gates={gates}", "--feature-gates=KubeletSeparateDiskGC=false") as server:
        client = HttpsClient(server.kubeconfig)
        reply = client.call("GET", WATCH_LIST)
        assert reply.status == 422
        assert DISABLED in reply.message
        assert client.call("GET", "/api/v1/namespaces?watch=1&timeoutSeconds=1").status == 200
        resources = client.call("GET", "/api/v1").body["resources"]
        assert not any("storageVersionHash" in resource for resource in resources)
        connection = server.connect()
        connection.request("GET", "/metrics")
        metrics = connection.getresponse().read().decode()
        assert 'kubernetes_feature_enabled{name="WatchList",stage="BETA"} 0' in metrics
        assert 'kubernetes_feature_enabled{name="WatchListCompression",stage="BETA"} 1' in metrics
        assert 'kubernetes_feature_enabled{name="KubeletSeparateDiskGC",stage="BETA"} 0' in metrics
        large = {"metadata": {"name": "large"}, "data": {"text": "a" * 200_000}}
        assert client.call("POST", CONFIG_MAPS, large).status == 201
        connection.request("GET", f"{CONFIG_MAPS}/large", headers={"Accept-Encoding": "gzip"})
        response = connection.getresponse()
        assert response.getheader("Content-Encoding") is None
        assert len(response.read()) > 200_000
        connection.request("GET", "/flagz")
        assert f"feature-gates={gates},KubeletSeparateDiskGC=false" in connection.getresponse().read().decode()
        connection.close()


def test_unknown_gates_prevent_the_start(tmp_path: Path) -> None:
    assert "unrecognized feature gate: Foo" in complaint(tmp_path, "--feature-gates=Foo=true")


def test_gates_without_effect_prevent_the_start(tmp_path: Path) -> None:
    text = "Tetrapod has only the default behaviour of CBORServingAndStorage"
    assert text in complaint(tmp_path, "--feature-gates=CBORServingAndStorage=true")
