"""`tetrapod console`: who may use it, what it reads, and what it says when it cannot read."""

from __future__ import annotations

import http.client
import json
import signal
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from support.console import Console, kubeconfig_of, running_console
from support.failing_starts import run_command
from support.https_client import HttpsClient
from support.kubeconfig import write_kubeconfig
from support.server import Server, free_port, running, start
from support.services import Services, running_services
from support.waiting import until
from support.webhook import Answer, webhook_server

TOKENS = Path(__file__).parents[2] / "contract" / "tokens.csv"
PANELS = {"server", "traffic", "leases", "apiservices", "crds"}
GROUP = "console.example.com"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with running(tmp_path_factory.mktemp("console") / "data", "--token-auth-file", str(TOKENS)) as found:
        yield found


@pytest.fixture(scope="module")
def console(server: Server) -> Iterator[Console]:
    with running_console(server.kubeconfig) as found:
        yield found
        assert "".join(found.errors) == ""


@pytest.fixture(scope="module")
def alices(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Console]:
    """The console of a user without permissions."""
    file = tmp_path_factory.mktemp("alice") / "kubeconfig"
    with running_console(kubeconfig_of(file, server.url, server.ca, "alice-token")) as found:
        yield found


def state_where(console: Console, panel: str, condition: Any) -> dict[str, Any]:
    """Return the first state of a panel that fulfils a condition."""
    with closing(console.states()) as states:
        return next(state for name, state in states if name == panel and condition(state))


# --- who may use it


def test_the_printed_address_gives_the_cookie_that_all_requests_need(console: Console) -> None:
    status, headers, _ = console.ask(f"/?token={console.token}", authenticated=False)
    assert (status, headers["location"]) == (303, "/")
    assert headers["set-cookie"] == f"{console.cookie}; HttpOnly; Path=/; SameSite=strict"
    assert console.ask("/")[0] == 200


@pytest.mark.parametrize(
    "path", ["/", "/?token=wrong", "/settings", "/events", "/trace?path=/api", "/static/console.js"]
)
def test_nothing_is_served_without_the_cookie(console: Console, path: str) -> None:
    assert console.ask(path, authenticated=False)[0] == 401
    assert (
        console.ask(path, headers={"cookie": f"tetrapod-console-{console.port}=wrong"}, authenticated=False)[0] == 401
    )
    assert console.ask(path, headers={"cookie": f"tetrapod-console-1={console.token}"}, authenticated=False)[0] == 401


@pytest.mark.parametrize("host", ["evil.example.com", "127.0.0.1", "127.0.0.1:1", "localhost.evil.example.com", ""])
def test_other_names_of_the_host_are_rejected(console: Console, host: str) -> None:
    assert console.ask("/", headers={"host": host})[0] == 421
    assert console.ask(f"/?token={console.token}", headers={"host": host}, authenticated=False)[0] == 421


def test_localhost_is_a_name_of_the_host(console: Console) -> None:
    assert console.ask("/", headers={"host": f"localhost:{console.port}"})[0] == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "https://evil.example.com"},
        {"origin": "http://127.0.0.1:1"},
        {"origin": "null"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "iframe"},
    ],
)
@pytest.mark.parametrize("path", ["/", "/settings", "/trace?path=/api"])
def test_requests_of_other_sites_are_rejected(console: Console, path: str, headers: dict[str, str]) -> None:
    assert console.ask(path, headers=headers)[0] == 403


def test_a_link_elsewhere_may_lead_to_the_first_page_only(console: Console) -> None:
    link = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}
    assert console.ask("/", headers=link)[0] == 200
    assert console.ask("/trace?path=/api", headers=link)[0] == 403


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
def test_only_reads_are_accepted(console: Console, method: str) -> None:
    status, headers, _ = console.ask("/", method)
    assert (status, headers["allow"]) == (405, "GET, HEAD")


def test_it_listens_on_the_loopback_address_only(console: Console) -> None:
    files = [Path(f"/proc/{console.process.pid}/net/{table}") for table in ("tcp", "tcp6")]
    rows = [line.split() for file in files for line in file.read_text().splitlines()[1:]]
    port = f"{console.port:04X}"
    assert [row[1] for row in rows if row[1].endswith(f":{port}") and row[3] == "0A"] == [f"0100007F:{port}"]


@pytest.mark.parametrize("path", ["/", "/settings", "/static/views.js", "/missing", "/trace?path=/api"])
def test_responses_have_a_strict_policy(console: Console, path: str) -> None:
    _, headers, _ = console.ask(path)
    policy = headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; ") and "unsafe" not in policy and "*" not in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cross-origin-resource-policy"] == "same-origin"
    assert headers["cache-control"] == "no-store"
    assert "server" not in headers and "access-control-allow-origin" not in headers


def test_files_outside_the_package_are_not_served(console: Console) -> None:
    for path in ("/static/../guard.py", "/static/%2e%2e/guard.py", "/docs", "/openapi.json"):
        assert console.ask(path)[0] == 404


# --- what it reads


def test_each_panel_has_the_data_of_the_server(console: Console, server: Server) -> None:
    admin = HttpsClient(server.kubeconfig)
    names = {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"}
    schema = {"openAPIV3Schema": {"type": "object"}}
    definition = {
        "metadata": {"name": f"things.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": names,
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
        },
    }
    assert admin.call("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition).status == 201
    service = {"namespace": "default", "name": "absent", "port": 443}
    spec = {"group": "absent.example.com", "version": "v1", "groupPriorityMinimum": 1, "versionPriority": 1}
    absent = {
        "metadata": {"name": "v1.absent.example.com"},
        "spec": {**spec, "service": service, "insecureSkipTLSVerify": True},
    }
    assert admin.call("POST", "/apis/apiregistration.k8s.io/v1/apiservices", absent).status == 201
    lease = {
        "metadata": {"name": "old"},
        "spec": {"holderIdentity": "me", "leaseDurationSeconds": 1, "renewTime": "2020-01-01T00:00:00.000000Z"},
    }
    assert admin.call("POST", "/apis/coordination.k8s.io/v1/namespaces/default/leases", lease).status == 201

    def established(state: dict[str, Any]) -> bool:
        conditions = [c for row in state["data"]["rows"] if row["kind"] == "Thing" for c in row["conditions"]]
        return {"type": "Established", "status": "True"}.items() <= {
            k: v for c in conditions if c["type"] == "Established" for k, v in c.items()
        }.items()

    row = next(r for r in state_where(console, "crds", established)["data"]["rows"] if r["kind"] == "Thing")
    assert (row["name"], row["scope"], row["stored"]) == (f"things.{GROUP}", "Namespaced", ["v1"])
    assert row["versions"] == [{"name": "v1", "served": True, "storage": True}]

    def unavailable(state: dict[str, Any]) -> bool:
        return any(row["available"] == "False" for row in state["data"]["rows"])

    services = state_where(console, "apiservices", unavailable)["data"]["rows"]
    failed = [row for row in services if row["available"] != "True"]
    assert [(row["name"], row["service"], row["reason"]) for row in failed] == [
        ("v1.absent.example.com", "default/absent", "ServiceNotFound")
    ]
    assert "v1.apps" in {row["name"] for row in services}
    leases = {row["name"]: row for row in state_where(console, "leases", bool)["data"]["rows"]}
    assert (leases["old"]["state"], leases["old"]["holder"]) == ("expired", "me")
    own = [row for name, row in leases.items() if name.startswith("apiserver-")]
    assert own and own[0]["state"] == "held" and own[0]["renewed"] < 3600
    shown = state_where(console, "server", bool)["data"]
    assert shown["version"].startswith("v1.37") and shown["url"] == server.url and shown["ready"]
    assert {"name": "ping", "ok": True, "text": "ok"} in shown["checks"]


def test_rates_follow_the_traffic_of_a_user(console: Console, server: Server) -> None:
    admin = HttpsClient(server.kubeconfig)
    with admin.lines("/api/v1/configmaps?watch=1") as watch:
        watch.readline()  # the watch has begun

        def seen(state: dict[str, Any]) -> bool:
            for _ in range(20):
                admin.call("GET", "/api/v1/namespaces/default")
            caches = {row["resource"]: row for row in state["data"]["caches"]}
            gets = [row for row in state["data"]["verbs"] if row["verb"] == "GET" and (row["rate"] or 0) > 5]
            return bool(gets) and caches["configmaps"]["watches"] == 1

        data = state_where(console, "traffic", seen)["data"]
    flow = next(row for row in data["flows"] if row["schema"] == "exempt")
    assert flow["rate"] > 5 and 0 < flow["mean"] < 1 and 0 < flow["p50"] <= flow["p99"]
    assert {line["name"] for line in data["charts"]["rate"]} >= {"exempt", "workload-low"}
    caches = {row["resource"]: row for row in data["caches"]}
    assert caches["namespaces"]["objects"] == 4 and caches["configmaps"]["capacity"] > 0
    (process,) = data["processes"]
    assert process["error"] is None and process["memory"] > 1e7 and process["url"] == server.url


@pytest.mark.long
def test_the_metrics_of_four_services_are_added_up(tmp_path: Path) -> None:
    with running_services(tmp_path) as services, running_console(services.kubeconfig, *metrics(services)) as console:
        data = state_where(console, "traffic", lambda state: state["data"]["verbs"])["data"]
        assert [(row["name"], row["error"]) for row in data["processes"]] == [
            ("apiserver", None),
            ("core", None),
            ("extensions", None),
            ("auth", None),
        ]
        objects = {(row["group"], row["resource"]): row["objects"] for row in data["caches"]}
        assert objects["", "namespaces"] == 4  # core
        assert objects["rbac.authorization.k8s.io", "clusterroles"] > 50  # auth
        assert ("apiextensions.k8s.io", "customresourcedefinitions") in objects  # extensions
        assert objects["apiregistration.k8s.io", "apiservices"] > 20  # aggregator
        services.stop("core")

        def gone(state: dict[str, Any]) -> bool:
            return state["data"]["processes"][1]["error"] is not None

        data = state_where(console, "traffic", gone)["data"]
        assert data["processes"][1]["error"]["status"] == 0
        assert data["processes"][2]["error"] is None
        shown = console.ask("/trace?path=/apis/rbac.authorization.k8s.io/v1/clusterroles")[2].decode()
        assert "service auth" in shown


def metrics(services: Services) -> list[str]:
    names = ("core", "extensions", "auth")
    return [flag for name in names for flag in ("--metrics", f"{name}={services.address(name)}")]


def test_the_path_of_a_request_is_a_page(console: Console) -> None:
    status, headers, body = console.ask("/trace?path=/api/v1/pods%3Flimit%3D5")
    assert status == 200 and headers["content-type"] == "text/html; charset=utf-8"
    assert "frame-ancestors 'self'" in headers["content-security-policy"]
    text = body.decode()
    assert "<h1>GET /api/v1/pods?limit=5&amp;trace=1</h1>" in text and "cacher.GetList" in text


@pytest.mark.parametrize("path", ["/api/v1/pods%3Fwatch=1", "/debug/pprof/profile", "/api/v1/nodes/a/proxy/x"])
def test_paths_that_do_more_than_read_are_not_requested(console: Console, server: Server, path: str) -> None:
    log = server.log.read_text()
    status, _, body = console.ask(f"/trace?path={path}")
    assert status == 400 and "role=alert" in body.decode()
    assert "pprof" not in server.log.read_text().removeprefix(log)


def test_no_panel_is_read_while_no_browser_shows_the_page(console: Console, server: Server) -> None:
    def requests() -> int:
        text = HttpsClient(server.kubeconfig).lines("/metrics").read().decode()
        lines = [line for line in text.splitlines() if line.startswith("apiserver_request_total") and "leases" in line]
        return round(sum(float(line.split()[-1]) for line in lines if 'verb="LIST"' in line))

    state_where(console, "leases", bool)
    assert requests() > 0
    # Ten scrapes take several intervals. One read may have been on its way before them.
    until(lambda: {requests() for _ in range(10)}, lambda counts: len(counts) == 1)


# --- what it says when it cannot read


def test_missing_permissions_are_reported_by_panel(alices: Console) -> None:
    with closing(alices.states()) as states:
        seen: dict[str, dict[str, Any]] = {}
        for name, state in states:
            seen[name] = state
            if set(seen) == PANELS:
                break
    for panel in ("traffic", "leases", "apiservices", "crds"):
        assert (seen[panel]["data"], seen[panel]["error"]["status"]) == (None, 403)
    assert 'User "alice" cannot list resource "leases"' in seen["leases"]["error"]["message"]
    assert seen["server"]["data"]["ready"]  # everybody may read that
    assert "requests may be traced by members of system:masters only" in alices.ask("/trace?path=/api")[2].decode()


def test_a_server_that_is_away_is_reported_and_read_again_when_it_is_back(tmp_path: Path) -> None:
    port = free_port()
    server = start(tmp_path / "data", port=port)
    try:
        with running_console(server.kubeconfig) as console, closing(console.states()) as states:
            leases = (state for name, state in states if name == "leases")
            good = next(leases)
            assert good["error"] is None and good["data"]["rows"]
            server.stop()
            away = next(state for state in leases if state["error"])
            assert away["error"]["status"] == 0 and "refused" in away["error"]["message"]
            assert away["data"] == good["data"] and away["at"] >= good["at"]
            assert console.ask("/trace?path=/api")[0] == 502
            server = start(tmp_path / "data", port=port)
            back = next(state for state in leases if state["error"] is None)
            assert back["at"] > away["at"]
    finally:
        server.stop()


def test_unexpected_data_is_reported_and_read_again(tmp_path: Path) -> None:
    answers: dict[str, Any] = {
        "/apis/coordination.k8s.io/v1/leases": {"items": [5]},
        "/apis/apiregistration.k8s.io/v1/apiservices": ["no object"],
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions": {"items": [{"metadata": {"name": "a"}, "spec": []}]},
        "/metrics": Answer(body=b'apiserver_request_total{verb="GET"} many\n'),
    }
    with webhook_server() as hostile:
        for path, answer in answers.items():
            hostile.on(path, partial(lambda answer, _: answer, answer))
        with running_console(write_kubeconfig(tmp_path / "kubeconfig", hostile, "", token="x")) as console:
            leases = state_where(console, "leases", bool)["error"]
            assert leases["status"] == 200 and leases["message"].startswith("unexpected data (TypeError: ")
            assert "is not a JSON object" in state_where(console, "apiservices", bool)["error"]["message"]
            assert state_where(console, "crds", bool)["data"]["rows"][0]["name"] == "a"
            assert "/metrics is malformed" in state_where(console, "traffic", bool)["error"]["message"]
            hostile.on("/apis/coordination.k8s.io/v1/leases", lambda _: {"items": []})
            assert state_where(console, "leases", lambda state: not state["error"])["data"]["rows"] == []
            assert "".join(console.errors) == ""


def test_wrong_credentials_are_reported(server: Server, tmp_path: Path) -> None:
    with running_console(kubeconfig_of(tmp_path / "kubeconfig", server.url, server.ca, "wrong")) as console:
        state = state_where(console, "leases", bool)
        assert state["error"] == {"status": 401, "message": "Unauthorized"}


# --- start and end


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_ends_at_once_although_pages_are_open(server: Server, number: signal.Signals) -> None:
    with running_console(server.kubeconfig) as console, closing(console.states()) as states:
        next(states)
        console.process.send_signal(number)
        assert list(states) is not None  # the stream ends
        assert console.process.wait(10) in (0, -number)
        with pytest.raises((ConnectionError, http.client.HTTPException)):
            console.ask("/")
    assert "".join(console.errors) == ""


def test_the_context_of_the_kubeconfig_can_be_chosen(server: Server, tmp_path: Path) -> None:
    config = json.loads(kubeconfig_of(tmp_path / "kubeconfig", server.url, server.ca, "wrong").read_text())
    config["users"].append({"name": "admin", "user": {"token": "admin-token"}})
    config["contexts"].append({"name": "other", "context": {"cluster": "c", "user": "admin"}})
    (tmp_path / "kubeconfig").write_text(json.dumps(config))
    with running_console(tmp_path / "kubeconfig", "--context", "other") as console:
        assert state_where(console, "leases", bool)["error"] is None
    ended = run_command("console", "--kubeconfig", str(tmp_path / "kubeconfig"), "--context", "none")
    assert ended.returncode == 1 and "context was not found for specified context: none" in ended.stderr


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--metrics", "core"), "want NAME=https://HOST:PORT"),
        (("--metrics", "apiserver=https://x"), "want NAME=https://HOST:PORT with a new name"),
        (("--metrics", "core=http://x"), "want NAME=https://HOST:PORT"),
        (("--interval", "0"), "0.0 is not in the range"),
    ],
)
def test_invalid_flags_are_rejected(server: Server, flags: tuple[str, ...], message: str) -> None:
    ended = run_command("console", "--kubeconfig", str(server.kubeconfig), *flags)
    assert ended.returncode == 2 and message in ended.stderr


def test_a_port_in_use_is_reported(console: Console, server: Server) -> None:
    ended = run_command("console", "--kubeconfig", str(server.kubeconfig), "--port", str(console.port))
    assert ended.returncode == 1
    assert ended.stderr == f"Error: 127.0.0.1:{console.port} is not free: Address already in use\n"
