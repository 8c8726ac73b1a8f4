"""`make screenshots`: take the pictures of docs/how-to/console.md, of a server with some traffic.

The traffic comes from users of four priority levels. Figures differ from run to run.
"""

from __future__ import annotations

import random
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Page, ViewportSize

from support.browser import chromium, tab
from support.console import running_console
from support.https_client import HttpsClient
from support.server import Server, running
from support.waiting import until
from tetrapod.testing.client import Client

OUT = Path(__file__).parents[3] / "docs" / "images"
SIZE: ViewportSize = {"width": 1200, "height": 800}
POINTS = 60
TOKENS = 'admin-token,admin,admin,"system:masters"\nalice-token,alice,alice\n'
RIGHTS = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"


def main() -> None:
    with tempfile.TemporaryDirectory() as name, chromium() as browser:
        tokens = Path(name) / "tokens.csv"
        tokens.write_text(TOKENS)
        with running(Path(name) / "data", "--token-auth-file", str(tokens)) as server:
            admin = HttpsClient(server.kubeconfig)
            fill(admin)
            with (
                traffic(server, admin),
                running_console(server.kubeconfig, "--interval", "0.5") as console,
                tab(browser, viewport=SIZE, color_scheme="light") as opened,
            ):
                page = opened.page
                page.goto(console.address)
                chart = page.locator("[data-view=charts] polygon").first
                until(lambda: chart.get_attribute("points") or "", lambda points: len(points.split()) >= 2 * POINTS)
                picture(page, "console-traffic")
                page.get_by_role("link", name="Request path").click()
                page.get_by_label("GET").fill("/api/v1/namespaces/default/pods?limit=500")
                until(lambda: begin_of_trace(page), lambda milliseconds: milliseconds < 0.4)
                until(
                    lambda: page.locator("#waterfall").evaluate("frame => frame.clientHeight"), lambda high: high > 900
                )
                page.set_viewport_size({"width": SIZE["width"], "height": 1100})
                picture(page, "console-path")
                page.set_viewport_size({"width": SIZE["width"], "height": 500})
                page.get_by_role("link", name="APIs").click()
                page.emulate_media(color_scheme="dark")
                picture(page, "console-apis")


def begin_of_trace(page: Page) -> float:
    """Trace the request, and return when its first step began: later if it waited for other requests."""
    frame = page.frame_locator("#waterfall")
    with page.expect_response(lambda response: "/trace?" in response.url) as answered:
        page.get_by_role("button", name="Trace").click()
    answered.value.finished()
    return float(frame.locator(".steps tbody tr").first.locator("td.n").first.inner_text())


def picture(page: Page, name: str) -> None:
    OUT.mkdir(exist_ok=True)
    page.screenshot(path=OUT / f"{name}.png", animations="disabled")


def fill(admin: HttpsClient) -> None:
    """Create pods, a custom resource, an APIService without its server, and permissions for all users."""
    everybody = {"kind": "Group", "name": "system:authenticated", "apiGroup": "rbac.authorization.k8s.io"}
    role = {"kind": "ClusterRole", "name": "view", "apiGroup": "rbac.authorization.k8s.io"}
    create(admin, RIGHTS, {"metadata": {"name": "all-view"}, "subjects": [everybody], "roleRef": role})
    pod = {"spec": {"containers": [{"name": "web", "image": "nginx"}]}}
    for number in range(40):
        create(admin, "/api/v1/namespaces/default/pods", {"metadata": {"name": f"web-{number}"}, **pod})
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
    names = {"plural": "crontabs", "singular": "crontab", "kind": "CronTab", "listKind": "CronTabList"}
    spec = {"group": "stable.example.com", "scope": "Namespaced", "names": names, "versions": [version]}
    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    create(admin, definitions, {"metadata": {"name": "crontabs.stable.example.com"}, "spec": spec})
    service = {"namespace": "kube-system", "name": "metrics-server", "port": 443}
    metrics = {
        "group": "metrics.k8s.io",
        "version": "v1beta1",
        "groupPriorityMinimum": 100,
        "versionPriority": 100,
        "insecureSkipTLSVerify": True,
        "service": service,
    }
    apiservices = "/apis/apiregistration.k8s.io/v1/apiservices"
    create(admin, apiservices, {"metadata": {"name": "v1beta1.metrics.k8s.io"}, "spec": metrics})


def create(admin: HttpsClient, path: str, body: dict[str, object]) -> None:
    reply = admin.call("POST", path, body)
    assert reply.status == 201, reply


@contextmanager
def traffic(server: Server, admin: HttpsClient) -> Iterator[None]:
    """Send requests of users of several priority levels, in threads."""
    bearers = ["alice-token"]
    for namespace in ("default", "kube-system"):
        account = f"/api/v1/namespaces/{namespace}/serviceaccounts"
        create(admin, account, {"metadata": {"name": "controller"}})
        bearers.append(admin.call("POST", f"{account}/controller/token", {"spec": {}}).body["status"]["token"])
    clients = [Client(server.url, server.ca, bearer) for bearer in (*bearers, "admin-token")]
    stop = threading.Event()
    threads = [threading.Thread(target=requests, args=(client, stop, seed)) for seed, client in enumerate(clients)]
    for thread in threads:
        thread.start()
    try:
        with admin.lines("/api/v1/pods?watch=1"), admin.lines("/api/v1/namespaces/default/configmaps?watch=1"):
            yield
    finally:
        stop.set()
        for thread in threads:
            thread.join()
        for client in clients:
            client.close()


def requests(client: Client, stop: threading.Event, seed: int) -> None:
    """Send requests at a rate that changes from second to second."""
    dice = random.Random(seed)
    paths = ("/api/v1/namespaces/default/pods/web-1", "/api/v1/namespaces/default/pods?limit=20", "/api/v1/namespaces")
    while not stop.is_set():
        pause = dice.uniform(0.01, 0.05) * (seed + 1)
        for _ in range(round(1 / pause)):
            if stop.wait(pause):
                return
            client.request("GET", dice.choice(paths))


if __name__ == "__main__":
    main()
