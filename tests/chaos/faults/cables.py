"""Cut the network between members silently: packets are dropped, and no connection is refused."""

from __future__ import annotations

from collections.abc import Callable

from chaos.worlds import MEMBERS, FourServices
from support.network import Namespaces

Pairs = list[tuple[str, str]]


class Cut:
    def __init__(self, world: FourServices, choose: Callable[[], Pairs], hold: float = 8.0) -> None:
        assert isinstance(world.network, Namespaces)
        self.hold = hold
        self._network = world.network
        self._choose = choose
        self._pairs: Pairs = []

    def inject(self) -> str:
        self._pairs = self._choose()
        for one, other in self._pairs:
            self._network.disconnect(one, other)
        return "cut: " + ", ".join(f"{one} from {other}" for one, other in self._pairs)

    def heal(self) -> None:
        for one, other in self._pairs:
            self._network.reconnect(one, other)


def service_from_leader(world: FourServices, service: str) -> Callable[[], Pairs]:
    return lambda: [(service, world.etcd.leader().name)]


def service_from_etcd(service: str) -> Callable[[], Pairs]:
    return lambda: [(service, member) for member in MEMBERS]


def leader_from_members(world: FourServices) -> Callable[[], Pairs]:
    """Isolate etcd's leader from the other members.

    It does not know that it has lost the leadership, and the services still reach it.
    """

    def choose() -> Pairs:
        first = world.etcd.leader().name
        return [(first, member) for member in MEMBERS if member != first]

    return choose
