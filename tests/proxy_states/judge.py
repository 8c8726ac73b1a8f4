"""Runs both proxies beside one API server, changes its objects, and compares the rules after each step."""

from __future__ import annotations

import difflib
import json
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, Final

from proxy_states.namespaces import SERVER, Namespace, two
from proxy_states.proxies import STOCK, TETRAPOD, Proxy, settings, write_settings
from proxy_states.rules import rules_of
from proxy_states.world import World
from support.https_client import HttpsClient
from support.server import Server, environment, free_port, wait_ready
from support.server import command as tetrapod
from tetrapod.generic.certificates.pki import write_pki

SECONDS: Final = 60.0
"""The limit for both proxies to reach the same rules."""


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

    def _compare(self) -> None:
        """Wait until both proxies have received everything and have the same rules.

        Raises:
            Different: they do not in time.
        """
        wanted, unwanted = self._world.mark(), self._world.unwanted_marks()
        deadline = time.monotonic() + SECONDS
        while True:
            for proxy in self._proxies.values():
                proxy.check()
            rules = {kind: rules_of(proxy.namespace) for kind, proxy in self._proxies.items()}
            texts = ["\n".join(lines) for lines in rules.values()]
            received = all(
                all(mark in text for mark in wanted) and not any(mark in text for mark in unwanted) for text in texts
            )
            if received and texts[0] == texts[1]:
                break
            if time.monotonic() > deadline:
                self._fail(rules, wanted)
            time.sleep(0.05)
        self.compared += 1
        self.lines += len(rules[STOCK])
        self._compare_health()

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

    def _compare_health(self) -> None:
        """Compare the answers of the servers at health check ports, and the metrics that count rules."""
        client = self._world.client
        services = client.call("GET", "/api/v1/services").body["items"]
        ports = [service["spec"].get("healthCheckNodePort") for service in services]
        for path in [f":{port}/" for port in ports if port] + [":10249/proxyMode", ":10249/healthz"]:
            deadline = time.monotonic() + SECONDS
            while True:
                answers = [proxy.namespace.within(partial(fetch, path)) for proxy in self._proxies.values()]
                if answers[0] == answers[1]:
                    break
                if time.monotonic() > deadline:
                    history = "\n".join(self._history)
                    raise Different(f"{path}: {answers[0]} and {answers[1]} after:\n{history}")
                time.sleep(0.05)


def fetch(url: str) -> tuple[Any, ...]:
    """Return status, some headers and body of the answer of a server at the node's address, or the error."""
    host = "127.0.0.1" if ":102" in url else "10.10.0.5"
    try:
        with urllib.request.urlopen(f"http://{host}{url}", timeout=5) as answer:
            return _shown(answer)
    except urllib.error.HTTPError as error:
        return _shown(error)
    except OSError as error:
        return (type(error).__name__,)


def _shown(answer: Any) -> tuple[Any, ...]:
    names = ("content-type", "x-content-type-options", "x-load-balancing-endpoint-weight", "content-length")
    return answer.status, [answer.headers.get(name) for name in names], answer.read().decode()


def judge(directory: Path, seed: int, cases: int, steps: int) -> Judge:
    """Compare both proxies over some cases of some steps, and return the judge with its counts.

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
        finally:
            judged.stop()
    return judged
