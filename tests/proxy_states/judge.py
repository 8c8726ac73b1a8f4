"""Runs both proxies beside one API server, changes its objects, and compares the rules after each step."""

from __future__ import annotations

import difflib
import json
import subprocess
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, Final

from proxy_states.namespaces import NODE, SERVER, two
from proxy_states.proxies import STOCK, TETRAPOD, Proxy, settings, write_settings
from proxy_states.rules import kinds_in, rules_of
from proxy_states.world import World
from support.https_client import HttpsClient
from support.network_namespace import Namespace
from support.server import Server, environment, free_port, wait_ready
from support.server import command as tetrapod
from tetrapod.generic.certificates.pki import write_pki

SECONDS: Final = 60.0
"""The limit for both proxies to reach the same rules."""
PATIENCE: Final = 5.0
"""The seconds after which the zone of the node is repeated for a kube-proxy that does not know it."""
MARK_SECONDS: Final = 2.0
LARGE_STEPS: Final = 3
PORT: Final = 10249
_ABOUT_RULES: Final = (
    "kubeproxy_sync_proxy_rules_iptables_total",
    "kubeproxy_sync_proxy_rules_no_local_endpoints_total",
    "kubeproxy_sync_proxy_rules_service_changes_pending",
    "kubeproxy_sync_proxy_rules_endpoint_changes_pending",
)
_EVENTUAL: Final = {
    f"kubeproxy_{name}"
    for family in (
        "sync_partial_proxy_rules_duration_seconds",
        "conntrack_reconciler_sync_duration_seconds",
    )
    for name in (f"{family}_bucket", f"{family}_sum", f"{family}_count", "conntrack_reconciler_deleted_entries_total")
}
"""Metrics that only exist after a partial write, or a change of a UDP port: it depends on the times of events."""


class Different(AssertionError):
    """The rules, or the answers of health servers, differ."""


@contextmanager
def api_server(directory: Path) -> Iterator[Server]:
    """Yield an API server that both namespaces reach."""
    data, port = directory / "data", free_port()
    write_pki(data / "pki", [SERVER])
    ranges = "--service-cluster-ip-range=10.96.0.0/16,fd00:96::/108"
    argv = tetrapod("up", f"--data-dir={data}", f"--bind-address={SERVER}", f"--secure-port={port}", ranges)
    argv += [f"--advertise-address={SERVER}", "--controllers=-*"]
    log = directory / "server.log"
    with log.open("ab") as out:
        process = subprocess.Popen(argv, stdout=out, stderr=out, env=environment())
    server = Server(process, f"https://{SERVER}:{port}", data, log)
    try:
        wait_ready(server.url, process, log)
        yield server
    finally:
        server.stop()


class Judge:
    """Both proxies, and the objects of the API.

    Args:
        directory: a directory for files.
        namespaces: where the proxies run.
        server: the API server.
        random: chooses settings and changes.
    """

    def __init__(
        self, directory: Path, namespaces: tuple[Namespace, Namespace], server: Server, random: Random
    ) -> None:
        self._random = random
        self._file = directory / "proxy.json"
        self._kubeconfig = server.kubeconfig
        self._proxies = {
            TETRAPOD: Proxy(TETRAPOD, namespaces[0], directory),
            STOCK: Proxy(STOCK, namespaces[1], directory),
        }
        self._world = World(HttpsClient(server.kubeconfig), random)
        self._history: list[str] = []
        self.compared = 0
        self.repetitions = 0
        self.kinds: Counter[str] = Counter()
        self.lines = 0

    def begin(self) -> None:
        """Create the first objects."""
        self._world.begin()

    def case(self, steps: int) -> None:
        """Start both proxies with new settings, and compare them after each of some steps."""
        self._start_both()
        self._compare()
        for _ in range(steps):
            self._history += self._world.step()
            if self._random.random() < 0.15:
                self._restart()
            self._compare()

    def large_case(self, steps: int) -> None:
        """Compare the proxies while a Service has more than 1,000 endpoints, and after it is deleted."""
        self._start_both()
        self._compare()
        self._history.append(self._world.grow())
        self._compare(mark_again=True)
        for _ in range(steps):
            self._history += self._world.step()
            self._compare(mark_again=True)
        self._history.append(self._world.shrink())
        self._compare(mark_again=True)

    def stop(self) -> None:
        """End both proxies."""
        for proxy in self._proxies.values():
            proxy.stop()

    def _start_both(self) -> None:
        self.stop()
        content = settings(self._random, self._kubeconfig)
        write_settings(self._file, content)
        shown = {key: content.get(key) for key in ("detectLocalMode", "clusterCIDR", "nodePortAddresses", "iptables")}
        self._history = [f"start both with {json.dumps(shown)}"]
        for proxy in self._proxies.values():
            proxy.start(self._file)

    def _restart(self) -> None:
        """Restart one proxy, or let each continue in the place of the other, with the rules that it finds there."""
        choice = self._random.choice((TETRAPOD, STOCK, "exchange"))
        self._history.append(f"restart: {choice}")
        if choice != "exchange":
            self._proxies[choice].stop()
            self._proxies[choice].start(self._file)
            return
        self.stop()
        first, second = self._proxies.values()
        first.namespace, second.namespace = second.namespace, first.namespace
        for proxy in self._proxies.values():
            proxy.start(self._file)

    def _compare(self, *, mark_again: bool = False) -> None:
        """Wait until both proxies have received everything and have the same rules.

        Args:
            mark_again: whether further changes of the markers are made. Stale chains of a large cluster are
                only deleted by a write that comes some time after the last deletion.

        Raises:
            Different: they do not in time.
        """
        wanted, unwanted = self._world.mark(), self._world.unwanted_marks()
        began, patience = time.monotonic(), PATIENCE
        marked = began
        while True:
            for proxy in self._proxies.values():
                proxy.check()
            rules = {kind: rules_of(proxy.namespace) for kind, proxy in self._proxies.items()}
            texts = {kind: "\n".join(lines) for kind, lines in rules.items()}
            received = {
                kind: all(mark in text for mark in wanted) and not any(mark in text for mark in unwanted)
                for kind, text in texts.items()
            }
            if all(received.values()) and texts[STOCK] == texts[TETRAPOD]:
                break
            waited = time.monotonic() - began
            if waited > SECONDS:
                self._fail(rules, wanted)
            # Not only when all have received everything: a stale chain can be an unwanted mark.
            if mark_again and time.monotonic() - marked > MARK_SECONDS:
                wanted, marked = self._world.mark(), time.monotonic()
            if waited > patience and received[TETRAPOD] and not received[STOCK]:
                self._world.repeat_zone()
                self.repetitions += 1
                patience += PATIENCE
            time.sleep(0.05)
        self.compared += 1
        self.kinds.update(kinds_in(rules[STOCK]))
        self.lines += len(rules[STOCK])
        self._compare_answers()

    def _fail(self, rules: dict[str, list[str]], wanted: list[str]) -> None:
        difference = difflib.unified_diff(
            rules[STOCK], rules[TETRAPOD], "kube-proxy", "tetrapod proxy", lineterm="", n=1
        )
        late = [
            f"{kind} has no {mark!r}"
            for kind, lines in rules.items()
            for mark in wanted
            if mark not in "\n".join(lines)
        ]
        text = "\n".join([*self._history, *late, *difference])
        raise Different(f"the rules differ after:\n{text}")

    def _compare_answers(self) -> None:
        """Compare the answers at health check ports, the metrics about rules, and the names of all metrics."""
        services = self._world.client.call("GET", "/api/v1/services").body["items"]
        ports = [service["spec"].get("healthCheckNodePort") for service in services]
        self._until_equal("metrics", partial(fetch_metrics, f"127.0.0.1:{PORT}"))
        for address in [f"{NODE[0]}:{port}" for port in ports if port] + [f"127.0.0.1:{PORT}/proxyMode"]:
            self._until_equal(address, partial(fetch, address))

    def _until_equal(self, what: str, get: Callable[[], Any]) -> None:
        """Wait until a function returns the same in both namespaces.

        Raises:
            Different: it does not in time.
        """
        deadline = time.monotonic() + SECONDS
        while True:
            stock, tetrapod = (self._proxies[kind].namespace.within(get) for kind in (STOCK, TETRAPOD))
            if stock == tetrapod:
                return
            if time.monotonic() > deadline:
                history = "\n".join(self._history)
                raise Different(f"{what}: kube-proxy has {stock}, tetrapod proxy has {tetrapod}, after:\n{history}")
            time.sleep(0.05)


def fetch(address: str) -> tuple[Any, ...]:
    """Return status, some headers and body of the answer of a server, or the name of the error."""
    try:
        with urllib.request.urlopen(f"http://{address}", timeout=5) as answer:
            return _shown(answer)
    except urllib.error.HTTPError as error:
        return _shown(error)
    except OSError as error:
        return (type(error).__name__,)


def fetch_metrics(address: str) -> tuple[Any, ...]:
    """Return the values of the metrics about rules, and the names of all metrics of the proxy that have a value.

    The result for a server that does not answer yet is unique, so that it equals no other.
    """
    answer = fetch(f"{address}/metrics")
    if answer[0] != 200:
        return (time.monotonic_ns(),)
    samples = [line for line in str(answer[-1]).splitlines() if line.startswith("kubeproxy_")]
    names = {line.partition("{")[0].partition(" ")[0] for line in samples} - _EVENTUAL
    return sorted(names), sorted(line for line in samples if line.startswith(_ABOUT_RULES))


def _shown(answer: Any) -> tuple[Any, ...]:
    names = ("content-type", "x-content-type-options", "x-load-balancing-endpoint-weight", "content-length")
    return answer.status, [answer.headers.get(name) for name in names], answer.read().decode()


def judge(directory: Path, seed: int, cases: int, steps: int) -> Judge:
    """Compare both proxies over some cases of some steps and over a large one, and return the judge with its counts.

    Raises:
        Different: the rules differ.
    """
    with two() as namespaces, api_server(directory) as server:
        judged = Judge(directory, namespaces, server, Random(seed))
        judged.begin()
        try:
            for number in range(cases):
                judged.case(steps)
                print(f"case {number + 1}: {judged.compared} states equal, {judged.lines} lines", flush=True)
            judged.large_case(LARGE_STEPS)
        finally:
            judged.stop()
    return judged
