"""The page that `tetrapod trace --html` writes, in a browser."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from support.browser import contrast, tab
from support.failing_starts import run_command
from support.kubeconfig import write_kubeconfig
from support.server import Server
from support.services import Services
from support.waiting import until
from support.webhook import webhook_server

HOSTILE = "</style></script><script>alert(1)</script><img src=x onerror=alert(2)>\"'`><svg/onload=alert(3)>&lt;&amp;"
POD = {"metadata": {"name": "a"}, "spec": {"containers": [{"name": "a", "image": "nginx"}]}}


def written(file: Path, kubeconfig: Path, *request: str) -> str:
    """Run `tetrapod trace --html` and return the URL of the file."""
    ended = run_command("trace", *request, "--kubeconfig", str(kubeconfig), "--html", str(file))
    assert (ended.returncode, ended.stdout) == (0, ""), ended.stderr
    return file.as_uri()


def steps(page: Page) -> list[str]:
    """Return the names of the steps, without their details."""
    found: list[str] = page.locator(".steps tbody th").evaluate_all(
        "cells => cells.map(cell => (cell.querySelector('summary') ?? cell).innerText)"
    )
    return found


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_shows_the_path_of_a_request_without_loading_anything(
    browser: Browser, one: Server, tmp_path: Path, scheme: str
) -> None:
    body = tmp_path / "pod.json"
    body.write_text(json.dumps({"apiVersion": "v1", "kind": "Pod", **POD}))
    request = ("POST", "/api/v1/namespaces/default/pods?dryRun=All", "-f", str(body))
    url = written(tmp_path / "trace.html", one.kubeconfig, *request)
    with tab(browser, color_scheme=scheme) as opened:
        page = opened.page
        page.goto(url)
        assert opened.requests == [url]
        assert (
            page.get_by_role("heading", level=1).inner_text().startswith("POST /api/v1/namespaces/default/pods?dryRun")
        )
        assert page.locator(".facts").inner_text().splitlines()[:2] == ["Status", "201"]
        shown = steps(page)
        assert shown[0] == "filter audit-id"
        assert "Create" in shown and "admission ServiceAccount" in shown and "cacher.Get" in shown
        assert shown.index("filter authentication") < shown.index("Create") < shown.index("registry create")
        filters = page.locator("tr.k-filter")
        assert filters.locator("details p").count() == filters.count() >= 10  # each filter says its purpose
        kinds = page.locator(".sums tbody th").all_inner_texts()
        assert {"Filters", "Admission", "Registry", "Storage and watch cache"} <= set(kinds)
        widths = page.locator(".steps tbody svg rect:first-child").evaluate_all(
            "bars => bars.map(bar => bar.getBoundingClientRect().width)"
        )
        assert min(widths) > 0.5 and max(widths) > 200
        step = page.locator(".steps summary", has_text="compression")
        step.click()
        assert page.get_by_text("Compresses a large response").is_visible()
        assert contrast(page, ".steps th") >= 4.5 and contrast(page, ".facts dt") >= 4.5


def test_the_page_shows_the_steps_of_the_service_behind_the_aggregator(
    browser: Browser, four: Services, tmp_path: Path
) -> None:
    with tab(browser) as opened:

        def traced() -> list[str]:
            opened.page.goto(written(tmp_path / "trace.html", four.kubeconfig, "GET", "/api/v1/namespaces/default"))
            return steps(opened.page)

        # A read that shares the request for etcd's revision with another one has no step for it.
        shown = until(traced, lambda shown: "etcdserverpb.KV/Range" in shown)
        front, behind = shown.index("service core"), shown.index("HTTP GET")
        assert front < behind < shown.index("etcdserverpb.KV/Range")
        assert "filter authorization" in shown[:front] and "filter authorization" in shown[behind:]
        assert "Between services" in opened.page.locator(".sums tbody th").all_inner_texts()


def test_the_page_of_a_rejected_request_shows_the_status(browser: Browser, one: Server, tmp_path: Path) -> None:
    url = written(tmp_path / "trace.html", one.kubeconfig, "GET", "/api/v1/namespaces/none")
    with tab(browser) as opened:
        opened.page.goto(url)
        assert opened.page.locator(".facts dd").first.inner_text() == "404"
        assert opened.page.locator(".steps .error").all_inner_texts() == ['namespaces "none" not found']


def hostile_report() -> dict[str, Any]:
    """Return a trace in which every text is hostile."""
    step = {
        "name": HOSTILE,
        "start": 0.1,
        "took": 0.5,
        "error": HOSTILE,
        "attributes": {HOSTILE: HOSTILE, "number": 5},
        "events": [{"at": 0.2, "name": HOSTILE}],
    }
    texts = dict.fromkeys(("auditID", "traceID", "server", "time"), HOSTILE)
    return {
        **texts,
        "took": 1.0,
        "dropped": 3,
        "request": {"method": "GET", "uri": f"/{HOSTILE}", "user": HOSTILE, "client": HOSTILE},
        "response": {"status": HOSTILE, "bytes": 5, "headers": {}},
        "spans": [{**step, "filter": True, "spans": [step]}],
    }


def test_hostile_texts_are_shown_and_have_no_effect(browser: Browser, tmp_path: Path) -> None:
    with webhook_server() as server:
        server.on("/hostile", lambda _: hostile_report())
        kubeconfig = write_kubeconfig(tmp_path / "kubeconfig", server, "")
        url = written(tmp_path / "trace.html", kubeconfig, "GET", "/hostile")
    with tab(browser) as opened:
        page = opened.page
        page.goto(url)
        assert opened.requests == [url]
        assert page.title() == page.get_by_role("heading", level=1).inner_text() == f"GET /{HOSTILE}"
        assert steps(page) == [f"filter {HOSTILE}", HOSTILE]
        assert page.locator("script, img").count() == 0
        page.locator(".steps summary").last.click()
        details = page.locator(".steps details").last
        assert details.locator("dt").all_inner_texts() == [HOSTILE, "number"]
        assert details.locator("li").all_inner_texts() == [f"0.200 {HOSTILE}"]
        assert page.locator(".steps .error").all_inner_texts() == [HOSTILE, HOSTILE]


def test_the_policy_of_the_page_forbids_scripts(browser: Browser, one: Server, tmp_path: Path) -> None:
    file = tmp_path / "trace.html"
    written(file, one.kubeconfig, "GET", "/version")
    file.write_text(file.read_text().replace("</main>", "<script>document.title = 'ran'</script></main>"))
    with tab(browser) as opened:
        opened.page.goto(file.as_uri())
        assert opened.page.title() == "GET /version?trace=1"
        assert len(opened.problems) == 1 and "Content Security Policy" in opened.problems[0]
        opened.problems.clear()
