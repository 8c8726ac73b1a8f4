"""The page of `tetrapod console`, in a browser, over one process and over four services."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from support import kube_apiserver, stock
from support.browser import REBOUND, Tab, contrast, tab
from support.console import Console, kubeconfig_of, running_console
from support.https_client import HttpsClient
from support.server import Server, free_port, start
from support.services import Services
from support.waiting import until

HOSTILE = "<img src=x onerror=alert(1)><script>alert(2)</script>'\"&amp;"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


@contextmanager
def console_page(browser: Browser, console: Console, **context: object) -> Iterator[Tab]:
    """Open the console, and wait until it is live."""
    with tab(browser, **context) as opened:
        opened.page.goto(console.address)
        expect(opened.page.get_by_role("status")).to_have_text("live")
        yield opened


def show(page: Page, name: str) -> None:
    page.get_by_role("link", name=name).click()


def rows(page: Page, panel: str, view: str) -> list[list[str]]:
    """Return the cells of a table."""
    found: list[list[str]] = page.locator(f"[data-panel={panel}][data-view={view}] tbody tr").evaluate_all(
        "rows => rows.map(row => [...row.cells].map(cell => cell.innerText))"
    )
    return found


def definition(name: str) -> dict[str, object]:
    names = {"plural": f"{name}s", "singular": name, "kind": name.title(), "listKind": f"{name.title()}List"}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
    return {
        "metadata": {"name": f"{name}s.page.example.com"},
        "spec": {"group": "page.example.com", "scope": "Cluster", "names": names, "versions": [version]},
    }


def lease(name: str, holder: str) -> dict[str, object]:
    return {"metadata": {"name": name}, "spec": {"holderIdentity": holder, "leaseDurationSeconds": 3600}}


@pytest.fixture(scope="module", params=["one", "four"])
def form(request: pytest.FixtureRequest) -> tuple[Path, list[str]]:
    """Return the kubeconfig of a form of Tetrapod, and the flags for its console."""
    if request.param == "one":
        one: Server = request.getfixturevalue("one")
        return one.kubeconfig, []
    four: Services = request.getfixturevalue("four")
    names = ("core", "extensions", "auth")
    return four.kubeconfig, [flag for name in names for flag in ("--metrics", f"{name}={four.address(name)}")]


@pytest.fixture(scope="module")
def console(form: tuple[Path, list[str]]) -> Iterator[Console]:
    with running_console(form[0], *form[1]) as found:
        yield found
        assert "".join(found.errors) == ""


@pytest.fixture(scope="module")
def admin(form: tuple[Path, list[str]]) -> HttpsClient:
    return HttpsClient(form[0])


def test_each_page_shows_data_of_the_server_and_follows_its_changes(
    browser: Browser, console: Console, admin: HttpsClient
) -> None:
    with console_page(browser, console) as opened:
        page = opened.page
        assert page.url == f"http://127.0.0.1:{console.port}/"  # without the token
        expect(page.locator("#server")).to_contain_text("v1.37")
        levels = page.locator("[data-view=levels] tbody th")
        expect(levels).to_contain_text(["catch-all", "exempt", "global-default", "workload-low"])
        label = page.locator("[data-view=charts] svg[role=img]").first
        until(lambda: label.get_attribute("aria-label") or "", lambda text: "exempt" in text)

        show(page, "Leases")
        assert admin.call("POST", LEASES, lease("live", "a-holder")).status == 201
        expect(page.locator("[data-view=leases] tbody tr", has_text="default/live")).to_contain_text("held")
        show(page, "APIs")
        assert admin.call("POST", CRDS, definition("gadget")).status == 201
        gadget = page.locator("[data-view=crds] tbody tr", has_text="gadgets.page.example.com")
        expect(gadget).to_contain_text("Established: True")
        expect(page.locator("[data-view=apiservices] tbody tr", has_text="v1.page.example.com")).to_contain_text("True")
        assert ["v1.apps", "Local", "True", "Local", "Local APIServices are always available"] in rows(
            page, "apiservices", "apiservices"
        )
        show(page, "Watches")
        with admin.lines("/api/v1/namespaces?watch=1") as watch:
            watch.readline()
            # The first cells are the resource, its watches and its objects.
            until(
                lambda: rows(page, "traffic", "caches"),
                lambda found: ["namespaces", "1", "4"] in [r[:3] for r in found],
            )
        until(lambda: rows(page, "traffic", "caches"), lambda found: ["namespaces", "0", "4"] in [r[:3] for r in found])
        show(page, "Health")
        assert ["etcd", "ok", ""] in rows(page, "server", "server")
        assert page.locator(".problem:visible").count() == 0
        assert all(url.startswith(f"http://127.0.0.1:{console.port}/") for url in opened.requests)


def test_rates_and_charts_are_live(browser: Browser, console: Console, admin: HttpsClient) -> None:
    with console_page(browser, console) as opened:
        page = opened.page

        def rate() -> float:
            for _ in range(10):
                assert admin.call("GET", "/api/v1/namespaces/default").status == 200
            found = [row[1] for row in rows(page, "traffic", "verbs") if row[0] == "GET"]
            return float(found[0].removesuffix("/s").replace(",", "").replace("–", "0")) if found else 0

        until(rate, lambda value: value > 5)
        first = page.locator("[data-view=charts] polygon").first.get_attribute("points")
        until(
            lambda: page.locator("[data-view=charts] polygon").first.get_attribute("points"), lambda now: now != first
        )


def test_the_path_of_a_chosen_request_is_drawn(browser: Browser, console: Console, admin: HttpsClient) -> None:
    with console_page(browser, console) as opened:
        page = opened.page
        show(page, "Request path")
        page.get_by_label("GET").fill("/api/v1/namespaces/default/configmaps?limit=5")
        page.get_by_role("button", name="Trace").click()
        frame = page.frame_locator("#waterfall")
        expect(frame.get_by_role("heading", level=1)).to_have_text(
            "GET /api/v1/namespaces/default/configmaps?limit=5&trace=1"
        )
        expect(frame.locator(".steps tbody th")).to_contain_text(
            ["audit-id", "authentication", "List", "cacher.GetList"]
        )
        # The frame is as high as its page, also when details are unfolded.
        until(lambda: unseen(page), lambda pixels: pixels <= 0)
        for summary in frame.locator("summary").all():
            summary.click()
        until(lambda: unseen(page), lambda pixels: pixels <= 0)
        page.get_by_label("GET").fill("/api/v1/pods?watch=1")
        page.get_by_label("GET").press("Enter")
        expect(frame.get_by_role("alert")).to_contain_text("this request is a watch")
        opened.problems[:] = [text for text in opened.problems if "status of 400" not in text]


def unseen(page: Page) -> int:
    """Return how many pixels of the waterfall its frame does not show."""
    pixels: int = page.locator("#waterfall").evaluate(
        "frame => frame.contentDocument.documentElement.scrollHeight - frame.clientHeight"
    )
    return pixels


def test_hostile_texts_of_users_are_shown_as_they_are(browser: Browser, console: Console, admin: HttpsClient) -> None:
    assert admin.call("POST", LEASES, lease("hostile", HOSTILE)).status == 201
    with console_page(browser, console) as opened:
        page = opened.page
        show(page, "Leases")
        until(lambda: rows(page, "leases", "leases"), lambda found: HOSTILE in [row[2] for row in found])
        show(page, "Request path")
        page.get_by_label("GET").fill(f"/version?x={HOSTILE.replace(' ', '%20')}")
        page.get_by_role("button", name="Trace").click()
        heading = page.frame_locator("#waterfall").get_by_role("heading", level=1)
        expect(heading).to_contain_text("<script>alert(2)</script>")
        assert page.locator("img, script:not([src])").count() == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_is_readable_in_both_color_schemes(browser: Browser, console: Console, scheme: str) -> None:
    with console_page(browser, console, color_scheme=scheme) as opened:
        page = opened.page
        for selector in ("body", "nav a", "thead th", ".age", "#server", ".legend li", ".tick"):
            page.locator(selector).first.wait_for(state="attached")
            assert contrast(page, selector) >= 4.5, selector
        show(page, "APIs")
        assert contrast(page, "td .good") >= 4.5
        assert page.get_by_role("link", name="APIs").get_attribute("aria-current") == "page"


def test_the_policy_forbids_other_scripts(browser: Browser, console: Console) -> None:
    with console_page(browser, console) as opened:
        opened.page.evaluate(
            "() => { const s = document.createElement('script'); try { s.textContent = 'document.title = 1'; } catch {}"
            " document.body.append(s); }"
        )
        assert opened.page.title() == "Tetrapod console"
        assert opened.problems and all(
            "Content Security Policy" in text or "Trusted" in text for text in opened.problems
        )
        opened.problems.clear()


def test_a_rebound_name_and_other_sites_get_nothing(browser: Browser, console: Console) -> None:
    with tab(browser) as opened:
        page = opened.page
        page.goto(console.address)
        response = page.goto(f"http://{REBOUND}:{console.port}/?token={console.token}")
        assert response is not None and response.status == 421
        # From here on the page is of another site, in the same browser that has the cookie.
        for url in ("/settings", "/trace?path=/version", "/events"):
            fetched = page.evaluate(
                "url => fetch(url, {mode: 'no-cors', credentials: 'include'}).then(r => r.type, e => e.name)",
                f"http://127.0.0.1:{console.port}{url}",
            )
            assert fetched == "TypeError", url
        opened.problems.clear()  # the browser reports the requests that failed


def test_a_user_without_permissions_sees_what_is_missing(browser: Browser, one: Server, tmp_path: Path) -> None:
    admin = HttpsClient(one.kubeconfig)
    account = "/api/v1/namespaces/default/serviceaccounts"
    assert admin.call("POST", account, {"metadata": {"name": "nobody"}}).status == 201
    reply = admin.call("POST", f"{account}/nobody/token", {"spec": {}})
    kubeconfig = kubeconfig_of(tmp_path / "kubeconfig", one.url, one.ca, reply.body["status"]["token"])
    with running_console(kubeconfig) as console, console_page(browser, console) as opened:
        page = opened.page
        expect(page.locator("[data-view=levels] .problem")).to_contain_text("You have no permission to see this")
        show(page, "Leases")
        expect(page.locator("[data-view=leases] .problem")).to_contain_text(
            'User "system:serviceaccount:default:nobody" cannot list resource "leases"'
        )
        show(page, "APIs")
        expect(page.locator("[data-view=crds] .problem")).to_contain_text("You have no permission")
        show(page, "Health")
        assert ["ping", "ok", ""] in rows(page, "server", "server")
        show(page, "Request path")
        page.get_by_role("button", name="Trace").click()
        alert = page.frame_locator("#waterfall").get_by_role("alert")
        expect(alert).to_contain_text("You have no permission for this trace")


def test_outages_of_server_and_console_are_shown(browser: Browser, tmp_path: Path) -> None:
    port = free_port()
    server = start(tmp_path / "data", port=port)
    with ExitStack() as stack:

        @stack.callback
        def stop() -> None:
            server.stop()  # the one that runs then

        consoles = stack.enter_context(ExitStack())
        console = consoles.enter_context(running_console(server.kubeconfig))
        opened = stack.enter_context(console_page(browser, console))
        page = opened.page
        show(page, "Leases")
        expect(page.locator("[data-view=leases] tbody tr")).to_have_count(1)
        server.stop()
        problem = page.locator("[data-view=leases] .problem")
        expect(problem).to_contain_text("The server cannot be reached")
        expect(problem).to_contain_text("The last known state is shown.")
        expect(page.get_by_role("status")).to_have_text("the API server cannot be reached")
        expect(page.locator("[data-view=leases]")).to_have_class("stale")
        expect(page.locator("[data-view=leases] .age")).to_contain_text("s ago")
        expect(page.locator("[data-view=leases] tbody tr")).to_have_count(1)
        server = start(tmp_path / "data", port=port)
        expect(problem).to_be_hidden()
        expect(page.get_by_role("status")).to_have_text("live")
        expect(page.locator("[data-view=leases]")).not_to_have_class("stale")
        assert opened.problems == []
        consoles.close()
        expect(page.get_by_role("status")).to_have_text("the console does not answer; trying again")
        opened.problems.clear()  # the browser reports that it cannot connect


@pytest.mark.long
def test_a_stock_kube_apiserver_is_shown_but_has_no_traces(browser: Browser, tmp_path: Path) -> None:
    binary = stock.binaries()["kube-apiserver"]
    with (
        kube_apiserver.running(binary, tmp_path) as server,
        running_console(server.kubeconfig) as console,
        console_page(browser, console) as opened,
    ):
        page = opened.page
        expect(page.locator("[data-view=levels] tbody th")).to_contain_text(["catch-all", "exempt", "workload-low"])
        until(lambda: rows(page, "traffic", "verbs"), lambda found: "LIST" in [row[0] for row in found])
        show(page, "Watches")
        until(lambda: rows(page, "traffic", "caches"), lambda found: any(row[0] == "namespaces" for row in found))
        show(page, "APIs")
        expect(page.locator("[data-view=apiservices] tbody tr", has_text="v1.apps")).to_contain_text("True")
        show(page, "Leases")
        expect(page.locator("[data-view=leases] tbody tr").first).to_contain_text("held")
        show(page, "Request path")
        page.get_by_role("button", name="Trace").click()
        alert = page.frame_locator("#waterfall").get_by_role("alert")
        expect(alert).to_contain_text("offers no traces")
