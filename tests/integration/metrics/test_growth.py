"""The page of metrics does not grow with deleted objects, nor with requests of clients without permissions."""

from __future__ import annotations

import http.client
import re
import ssl
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from itertools import count
from typing import Any, Final

import pytest

from integration.metrics.forms import FORMS, Form, serving
from support.definitions import definition
from support.metric_load import ADMIN, TokenClient
from support.waiting import until

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]

CRDS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
FLOWS: Final = "/apis/flowcontrol.apiserver.k8s.io/v1"
DEFINITIONS: Final = {"one process": 300, "four services": 60}
"""Definitions between two pages. One definition with traffic has about 550 lines while it exists."""
ROUNDS: Final = 50
"""Rounds of random requests between two pages. If each request had its own series, they would add 15,000 lines."""


@pytest.fixture(scope="module", params=FORMS)
def form(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Form]]:
    with serving(request.param, tmp_path_factory.mktemp("growth")) as found:
        yield request.param, found


def pages(form: Form) -> dict[str, list[str]]:
    return {name: ask("GET", "/metrics")[1].decode().splitlines() for name, ask in form.pages.items()}


def live_and_die(ask: TokenClient, group: str) -> None:
    """Create a definition and objects of it, send requests of every verb, and delete it."""
    assert ask("POST", CRDS, definition(group, "Widget"))[0] == 201
    path = f"/apis/{group}/v1/namespaces/default/widgets"
    widget = {"apiVersion": f"{group}/v1", "kind": "Widget", "metadata": {"name": "a"}}
    ask.until(lambda status: status in (201, 409), "POST", path, widget)
    requests: tuple[tuple[str, str, Any], ...] = (
        ("GET", f"{path}/a", None),
        ("GET", path, None),
        ("GET", f"/apis/{group}/v1/widgets", None),
        ("PATCH", f"{path}/a", {"spec": {"a": 1}}),
        ("DELETE", f"{path}/a", None),
    )
    for method, where, body in requests:
        assert ask(method, where, body, content_type="application/merge-patch+json")[0] == 200
    with ask.watching(f"{path}?watch=true&resourceVersion=0&allowWatchBookmarks=true"):
        pass
    assert ask("DELETE", f"{CRDS}/widgets.{group}")[0] == 200
    ask.until(lambda status: status == 404, "GET", f"{CRDS}/widgets.{group}")


def test_series_of_deleted_definitions_are_dropped(form: tuple[str, Form]) -> None:
    kind, found = form
    rounds, after = count(), pages(found)

    def most_added() -> int:
        """Create and delete definitions, and return the number of lines by which they made one page grow."""
        nonlocal after
        before, prefix = after, f"gone{next(rounds)}-"
        groups = [f"{prefix}{number}.example.com" for number in range(DEFINITIONS[kind])]
        with ThreadPoolExecutor(4) as workers:
            list(workers.map(lambda group: live_and_die(found.front, group), groups))
        until(lambda: not any(prefix in line for lines in pages(found).values() for line in lines), timeout=60)
        after = pages(found)
        assert after.keys() == before.keys() and all(before.values())
        return max(len(lines) - len(before[name]) for name, lines in after.items())

    # A watch of a built-in resource adds series of that resource when it gets its first bookmark. A single round may
    # therefore see growth that the definitions did not cause.
    until(most_added, lambda added: added < DEFINITIONS[kind], timeout=240)


def test_a_definition_that_is_created_again_is_counted_again(form: tuple[str, Form]) -> None:
    _, found = form
    for _ in range(2):
        live_and_die(found.front, "again.example.com")
    assert found.front("POST", CRDS, definition("again.example.com", "Widget"))[0] == 201
    path = "/apis/again.example.com/v1/namespaces/default/widgets"
    found.front.until(lambda status: status == 200, "GET", path)
    found.front("GET", path)
    counted = re.compile(r'apiserver_request_total\{code="200".*group="again\.example\.com",.*verb="LIST".* [1-9]')
    assert any(counted.match(line) for lines in pages(found).values() for line in lines)
    events = re.compile(
        r'apiserver_watch_cache_initializations_total\{group="again\.example\.com",resource="widgets"\} 1'
    )
    assert any(events.match(line) for lines in pages(found).values() for line in lines)


def test_series_of_deleted_flow_schemas_and_priority_levels_are_dropped(form: tuple[str, Form]) -> None:
    _, found = form
    level = {
        "metadata": {"name": "passing"},
        "spec": {"type": "Limited", "limited": {"limitResponse": {"type": "Reject"}}},
    }
    assert found.front("POST", f"{FLOWS}/prioritylevelconfigurations", level)[0] == 201
    user = [{"kind": "User", "user": {"name": "alice"}}]
    pods = [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "namespaces": ["*"]}]
    spec = {
        "priorityLevelConfiguration": {"name": "passing"},
        "matchingPrecedence": 2,
        "rules": [{"subjects": user, "resourceRules": pods}],
    }
    assert found.front("POST", f"{FLOWS}/flowschemas", {"metadata": {"name": "passing"}, "spec": spec})[0] == 201

    def shown() -> bool:
        found.front("GET", "/api/v1/namespaces/default/pods", token="alice-token")
        return any('flow_schema="passing"' in line for lines in pages(found).values() for line in lines)

    until(shown)
    for resource in ("flowschemas", "prioritylevelconfigurations"):
        assert found.front("DELETE", f"{FLOWS}/{resource}/passing")[0] == 200
    until(lambda: not any('"passing"' in line for lines in pages(found).values() for line in lines), timeout=60)


def odd_requests(ask: TokenClient, token: str, number: int) -> None:
    """Send requests whose method, path, user agent, media types and query are all made up."""
    requests = (
        (f"ODD{number}", "/api/v1/namespaces/default/pods"),
        (f"ODD{number}", "/apis"),
        (f"ODD{number}", f"/odd{number}"),
        ("GET", f"/odd/{number}"),
        ("GET", f"/apis/odd{number}.example.com/v{number}/things{number}/x"),
        ("GET", f"/api/v1/odd{number}"),
        ("GET", f"/api/v1/namespaces/odd{number}/pods/p{number}/odd{number}"),
        ("GET", f"/api/v1/namespaces/odd{number}/pods?dryRun=odd{number}&fieldValidation=odd{number}"),
        ("POST", f"/api/v1/namespaces/odd{number}/configmaps?dryRun=odd{number}&fieldManager=odd{number}"),
        ("PATCH", f"/api/v1/namespaces/default/configmaps/odd{number}?dryRun=All&dryRun=odd{number}"),
        ("POST", f"/apis/authorization.k8s.io/v1/selfsubjectaccessreviews?odd={number}"),
    )
    headers = {
        "authorization": f"Bearer {token}",
        "user-agent": f"odd/{number}",
        "content-type": f"application/odd{number}",
        "accept": f"application/odd{number}, */*",
        "content-length": "0",
    }
    with closing(_connection(ask.url)) as connection:
        for method, path in requests:
            connection.request(method, path, headers=headers)
            connection.getresponse().read()


def _connection(url: str) -> http.client.HTTPSConnection:
    return http.client.HTTPSConnection(
        url.removeprefix("https://"), timeout=60, context=ssl._create_unverified_context()
    )


@pytest.mark.parametrize("token", ["alice-token", ADMIN, "no-such-token"])
def test_made_up_requests_add_no_series(form: tuple[str, Form], token: str) -> None:
    _, found = form
    for number in range(3):
        odd_requests(found.front, token, number)
    after, numbers = pages(found), count(10)

    def most_added() -> int:
        """Send the requests of ROUNDS, and return the number of lines by which they made one page grow."""
        nonlocal after
        before = after
        for _ in range(ROUNDS):
            odd_requests(found.front, token, next(numbers))
        after = pages(found)
        assert after.keys() == before.keys() and all(before.values())
        return max(len(lines) - len(before[name]) for name, lines in after.items())

    # A watch of a built-in resource adds series of that resource when it gets its first bookmark. A single batch of
    # requests may therefore see growth that the requests did not cause.
    until(most_added, lambda added: added < ROUNDS, timeout=120)
    for name, lines in after.items():
        assert not [line for line in lines if re.search(r"odd\d", line, re.IGNORECASE)], name
