"""Kubeconfigs as `tetrapod trace` and `tetrapod console` read them: credential plugins, and several files."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from support.console import kubeconfig_of, running_console
from support.failing_starts import run_command
from support.server import Server, running

TOKENS = Path(__file__).parents[2] / "contract" / "tokens.csv"
VERSION = "client.authentication.k8s.io/v1"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with running(tmp_path_factory.mktemp("plugin") / "data", "--token-auth-file", str(TOKENS)) as found:
        yield found


def plugin(directory: Path, script: str) -> None:
    """Write a plugin. Its output is that of a shell script, which finds the number of its call in $n."""
    file = directory / "bin" / "plugin"
    file.parent.mkdir(exist_ok=True)
    file.write_text(f'#!/bin/sh\ncd "$(dirname "$0")"\necho call >> calls\nn=$(wc -l < calls)\n{script}\n')
    file.chmod(0o755)


def calls(directory: Path) -> int:
    return len((directory / "bin" / "calls").read_text().splitlines())


def credential(**status: Any) -> str:
    """Return a shell command that prints credentials."""
    return f"printf %s '{json.dumps({'kind': 'ExecCredential', 'apiVersion': VERSION, 'status': status})}'"


def kubeconfig(directory: Path, server: Server, **fields: Any) -> Path:
    """Write a kubeconfig with the plugin, whose path is relative to it."""
    file = kubeconfig_of(directory / "kubeconfig", server.url, server.ca, "")
    config = json.loads(file.read_text())
    exec_ = {"apiVersion": VERSION, "command": "./bin/plugin", "interactiveMode": "IfAvailable", **fields}
    config["users"][0]["user"] = {"exec": exec_}
    file.write_text(json.dumps(config))
    return file


def traced(file: Path) -> tuple[int, str]:
    ended = run_command("trace", "GET", "/version", "--kubeconfig", str(file))
    assert "Traceback" not in ended.stderr
    return ended.returncode, ended.stdout + ended.stderr


def test_the_token_of_the_plugin_authenticates(server: Server, tmp_path: Path) -> None:
    plugin(tmp_path, credential(token="admin-token"))
    code, output = traced(kubeconfig(tmp_path, server))
    assert code == 0 and "filter authentication" in output
    assert calls(tmp_path) == 1


def test_the_certificate_of_the_plugin_authenticates(server: Server, tmp_path: Path) -> None:
    user = json.loads(server.kubeconfig.read_text())["users"][0]["user"]
    pair = [base64.b64decode(user[f"client-{name}-data"]).decode() for name in ("certificate", "key")]
    plugin(tmp_path, credential(clientCertificateData=pair[0], clientKeyData=pair[1]))
    code, output = traced(kubeconfig(tmp_path, server))
    assert code == 0, output


def test_the_plugin_gets_its_environment_and_the_cluster(server: Server, tmp_path: Path) -> None:
    plugin(tmp_path, f'echo "$KUBERNETES_EXEC_INFO" > info; echo "$1 $MINE" > mine; {credential(token="admin-token")}')
    env = [{"name": "MINE", "value": "yes"}]
    assert traced(kubeconfig(tmp_path, server, provideClusterInfo=True, args=["first"], env=env))[0] == 0
    assert (tmp_path / "bin" / "mine").read_text() == "first yes\n"
    info = json.loads((tmp_path / "bin" / "info").read_text())
    authority = base64.b64encode(server.ca.read_bytes()).decode()
    cluster = {"server": server.url, "certificate-authority-data": authority, "config": None}
    assert info == {
        "kind": "ExecCredential",
        "apiVersion": VERSION,
        "spec": {"interactive": False, "cluster": cluster},
    }


def test_a_token_is_kept_until_it_expires(server: Server, tmp_path: Path) -> None:
    late, early = "2100-01-01T00:00:00Z", "2020-01-01T00:00:00Z"
    for expires, again in ((late, False), (early, True)):
        plugin(tmp_path, credential(token="admin-token", expirationTimestamp=expires))
        before = calls(tmp_path) if again else 0
        with running_console(kubeconfig(tmp_path, server)) as console, closing(console.states()) as states:
            leases = (state for name, state in states if name == "leases")
            assert [next(leases)["error"] for _ in range(3)] == [None] * 3
        assert (calls(tmp_path) - before > 3) == again


def test_a_token_that_the_server_rejects_is_renewed(server: Server, tmp_path: Path) -> None:
    wrong, right = credential(token="wrong"), credential(token="admin-token")
    plugin(tmp_path, f'if [ "$n" = 1 ]; then {wrong}; else {right}; fi')
    with running_console(kubeconfig(tmp_path, server)) as console, closing(console.states()) as states:
        errors = (state["error"] for name, state in states if name == "leases")
        assert next(errors) == {"status": 401, "message": "Unauthorized"}
        assert next(error for error in errors if error is None) is None


def test_a_plugin_that_fails_later_is_reported_on_the_page(server: Server, tmp_path: Path) -> None:
    early = credential(token="admin-token", expirationTimestamp="2020-01-01T00:00:00Z")
    plugin(tmp_path, f'if [ "$n" = 1 ]; then {early}; else exit 7; fi')
    with running_console(kubeconfig(tmp_path, server)) as console, closing(console.states()) as states:
        error = next(state["error"] for name, state in states if name == "leases")
    assert error == {"status": 0, "message": f"exec: executable {tmp_path}/bin/plugin failed with exit code 7"}


@pytest.mark.parametrize(
    ("script", "fields", "message"),
    [
        ("exit 3", {}, "failed with exit code 3"),
        ("echo x", {}, "decoding stdout: "),
        ("echo []", {}, "decoding stdout: the object is not an ExecCredential"),
        (credential(), {}, "exec plugin didn't return a status field"),
        (
            credential(expirationTimestamp="2100-01-01T00:00:00Z"),
            {},
            "exec plugin didn't return a token or cert/key pair",
        ),
        (credential(clientKeyData="x"), {}, "exec plugin returned only certificate or key, not both"),
        (credential(token="a", expirationTimestamp="soon"), {}, "decoding stdout: "),
        (
            credential(token="a"),
            {"apiVersion": f"{VERSION}beta1"},
            f"exec plugin is configured to use API version {VERSION}beta1, plugin returned version {VERSION}",
        ),
        ("", {"apiVersion": "v1"}, 'exec plugin: invalid apiVersion "v1"'),
        ("", {"command": ""}, "command must be specified"),
        ("", {"interactiveMode": ""}, "interactiveMode must be specified"),
        ("", {"interactiveMode": "Sometimes"}, 'unknown interactiveMode: "Sometimes"'),
        ("", {"interactiveMode": "Always"}, "standard input is not a terminal"),
        ("", {"command": "./bin/missing", "installHint": "Install it."}, "bin/missing not found"),
        ("", {"command": "no-such-plugin", "installHint": "Install it."}, "Install it."),
    ],
)
def test_a_plugin_without_credentials_is_an_error_in_plain_words(
    server: Server, tmp_path: Path, script: str, fields: dict[str, Any], message: str
) -> None:
    plugin(tmp_path, script)
    code, output = traced(kubeconfig(tmp_path, server, **fields))
    assert code == 1 and output.startswith("Error: ") and message in output


def test_the_files_of_the_variable_are_merged(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    second.mkdir()
    (second / "ca.crt").write_bytes(server.ca.read_bytes())
    plugin(second, credential(token="admin-token"))
    wrong = {"cluster": {"server": "https://127.0.0.1:1"}}
    right = {"cluster": {"server": server.url, "certificate-authority": "ca.crt"}}
    user = {"exec": {"apiVersion": VERSION, "command": "./bin/plugin", "interactiveMode": "Never"}}
    contexts = [{"name": name, "context": {"cluster": name, "user": "u"}} for name in ("a", "b")]
    head = {"apiVersion": "v1", "kind": "Config"}
    (first / "config").write_text(json.dumps({**head, "clusters": [{"name": "a", **wrong}], "contexts": contexts[:1]}))
    clusters = [{"name": "a", **right}, {"name": "b", **right}]
    rest = {"users": [{"name": "u", "user": user}], "contexts": contexts, "current-context": "b"}
    (second / "config").write_text(json.dumps({**head, "clusters": clusters, **rest}))
    monkeypatch.setenv("KUBECONFIG", f"{tmp_path}/missing:{first}/config:{second}/config")
    monkeypatch.chdir(tmp_path)
    assert run_command("trace", "GET", "/version").returncode == 0
    # The first cluster with a name counts.
    ended = run_command("trace", "GET", "/version", "--context", "a")
    assert ended.returncode == 1 and "https://127.0.0.1:1 cannot be asked" in ended.stderr


def test_missing_files_are_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", f"{tmp_path}/missing")
    ended = run_command("trace", "GET", "/version")
    assert (ended.returncode, ended.stderr) == (1, f"Error: stat {tmp_path}/missing: no such file or directory\n")
    monkeypatch.setenv("KUBECONFIG", "")
    monkeypatch.setenv("HOME", str(tmp_path))
    ended = run_command("trace", "GET", "/version")
    assert ended.returncode == 1 and f"stat {tmp_path}/.kube/config: no such file" in ended.stderr
