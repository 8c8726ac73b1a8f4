"""--authorization-mode=AlwaysDeny: only members of system:masters may do anything, as upstream."""

from __future__ import annotations

import subprocess
from pathlib import Path

from support.https_client import HttpsClient
from support.server import command, end, environment, free_port
from support.waiting import until

TOKENS = "bob-token,bob,bob,\n"


def test_only_system_masters_are_authorized(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens.csv"
    tokens.write_text(TOKENS)
    argv = command("up", "--data-dir", str(tmp_path), "--bind-address=127.0.0.1", f"--secure-port={free_port()}")
    argv += [f"--token-auth-file={tokens}", "--authorization-mode=AlwaysDeny"]
    process = subprocess.Popen(argv, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        kubeconfig = tmp_path / "kubeconfig"  # written when the server is ready; probes are forbidden
        until(kubeconfig.exists)
        admin = HttpsClient(kubeconfig)
        assert admin.call("GET", "/api/v1/namespaces").status == 200
        for path, text in (
            ("/api/v1/namespaces", 'User "bob" cannot list resource "namespaces" in API group "" at the cluster scope'),
            ("/readyz", 'User "bob" cannot get path "/readyz"'),
        ):
            reply = HttpsClient(kubeconfig, headers={"impersonate-user": "bob"}).call("GET", path)
            assert reply.status == 403
            assert reply.body["message"].endswith(f"{text}: alwaysdeny: Everything is forbidden.")
        review = {"spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}, "user": "bob"}}
        asked = admin.call("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", review)
        assert (asked.status, asked.body["status"]) == (
            201,
            {"allowed": False, "reason": "alwaysdeny: Everything is forbidden."},
        )
    finally:
        end(process)
