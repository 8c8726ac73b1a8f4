"""One of several replicas of a service crashes, hangs or restarts, while the others go on.

Before the fault is held, it waits for the reaction of the other replicas (they stop sending requests to it, or take
over the leadership).
"""

from __future__ import annotations

import contextlib
import json
import random
import re
import signal
import time
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from chaos.worlds import FourServices
from support.server import freeze

TIMEOUT: Final = 40.0
"""Seconds. Three to five are enough on an idle machine."""
_SHORT: Final = (
    "--leader-elect-lease-duration=4s",
    "--leader-elect-renew-deadline=3s",
    "--leader-elect-retry-period=500ms",
)
FLAGS: Final[Mapping[str, tuple[str, ...]]] = {"auth": _SHORT, "core": _SHORT}


def anyone(world: FourServices, chance: random.Random) -> Callable[[], str]:
    return lambda: chance.choice(world.services.keys)


def ask(world: FourServices, key: str, path: str, body: Any = None) -> str:
    """Send a request to a replica directly, as an administrator. Raises OSError."""
    address = world.address(key)
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(address.url + path, None if body is None else json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, context=address.tls, timeout=5) as answer:
        text: str = answer.read().decode()
        return text


def metric(world: FourServices, key: str, name: str, labels: str) -> float | None:
    found = re.search(rf"^{name}{{{re.escape(labels)}}} (\S+)$", ask(world, key, "/metrics"), re.MULTILINE)
    return float(found[1]) if found else None


def wait_until(what: str, holds: Callable[[], bool]) -> float:
    """Return the seconds until `holds` was true."""
    began = time.monotonic()
    while True:
        with contextlib.suppress(OSError):
            if holds():
                return time.monotonic() - began
        if time.monotonic() > began + TIMEOUT:
            raise TimeoutError(f"after {TIMEOUT:.0f} s: not {what}")
        time.sleep(0.05)


class _OfOne:
    """A fault of one replica, which is chosen at injection."""

    def __init__(self, world: FourServices, choose: Callable[[], str]) -> None:
        self._world = world
        self._choose = choose
        self._key = ""


class Kill(_OfOne):
    hold = 1.0

    def inject(self) -> str:
        self._key = self._choose()
        self._world.services.stop(self._key, signal.SIGKILL)
        return f"kill -9 of {self._key}"

    def heal(self) -> None:
        self._world.start(self._key)
        self._world.services.wait_ready(self._key)


class Pause(_OfOne):
    """Suspend a replica. Its clients must stop using it, although it refuses no connection."""

    hold = 3.0

    def inject(self) -> str:
        self._key = self._choose()
        name = self._key.partition("-")[0]
        freeze(self._world.services.processes[self._key])
        took = 0.0
        for front in self._world.keys("aggregator") if name != "aggregator" else ():
            took += wait_until(f"{self._key} left out by {front}", partial(self._leaves_out, front, name))
        return f"SIGSTOP of {self._key}, left out after {took:.1f} s"

    def _leaves_out(self, front: str, name: str) -> bool:
        return metric(self._world, front, "tetrapod_service_replicas", f'ready="false",service="{name}"') == 1

    def heal(self) -> None:
        self._world.services.processes[self._key].send_signal(signal.SIGCONT)


class KillController:
    """Stop the replica that holds the Lease. Another one must take the Lease and do its work."""

    hold = 0.5

    def __init__(self, world: FourServices, chance: random.Random) -> None:
        self._world = world
        self._chance = chance
        self._killed: Kill | None = None
        self._number = 0

    def inject(self) -> str:
        name = self._chance.choice(("auth", "core"))
        keys = self._world.keys(name)
        wait_until(f"a leader of {name}", lambda: any(self._leads(key) for key in keys))
        first = next(key for key in keys if self._leads(key))
        self._killed = Kill(self._world, lambda: first)
        done = self._killed.inject()
        others = [key for key in keys if key != first]
        took = wait_until(f"another leader of {name}", lambda: any(self._leads(key) for key in others))
        self._works()
        return f"{done}, which led; another one leads after {took:.1f} s"

    def _leads(self, key: str) -> bool:
        name = key.partition("-")[0]
        return metric(self._world, key, "leader_election_master_status", f'name="tetrapod-{name}"') == 1

    def _works(self) -> None:
        """Create a namespace, and wait for what a controller of core and a token of auth add to it."""
        self._number += 1
        front, space = self._world.keys("aggregator")[0], f"led-{self._number}"
        ask(self._world, front, "/api/v1/namespaces", {"metadata": {"name": space}})
        account = f"/api/v1/namespaces/{space}/serviceaccounts/default"
        wait_until(f"a service account in {space}", lambda: bool(ask(self._world, front, account)))

    def heal(self) -> None:
        assert self._killed is not None
        self._killed.heal()


class RollingRestart:
    """Restart the replicas one after the other by SIGTERM, as a Deployment does."""

    hold = 0.0

    def __init__(self, world: FourServices, keys: Sequence[str]) -> None:
        self._world = world
        self._keys = keys

    def inject(self) -> str:
        for key in self._keys:
            code = self._world.services.stop(key)
            assert code == 0, f"{key} ended with {code}"
            self._world.start(key)
            self._world.services.wait_ready(key)
        return f"{len(self._keys)} restarts"

    def heal(self) -> None:
        """Do nothing: all replicas run already."""
