"""Crashes and hangs of processes: the four services, redis, the embedded server."""

from __future__ import annotations

import signal

from chaos.worlds import Embedded, FourServices
from support.server import freeze


class KillService:
    hold = 1.0

    def __init__(self, world: FourServices, name: str) -> None:
        self._world = world
        self._name = name

    def inject(self) -> str:
        self._world.services.stop(self._name, signal.SIGKILL)
        return f"kill -9 of {self._name}"

    def heal(self) -> None:
        self._world.start(self._name)


class PauseService:
    hold = 4.0

    def __init__(self, world: FourServices, name: str) -> None:
        self._world = world
        self._name = name

    def inject(self) -> str:
        freeze(self._world.services.processes[self._name])
        return f"SIGSTOP of {self._name}"

    def heal(self) -> None:
        self._world.services.processes[self._name].send_signal(signal.SIGCONT)


class KillRedis:
    hold = 3.0

    def __init__(self, world: FourServices) -> None:
        self._redis = world.redis

    def inject(self) -> str:
        self._redis.stop()
        return "kill -9 of redis"

    def heal(self) -> None:
        self._redis.start()


class KillEmbedded:
    hold = 0.5

    def __init__(self, world: Embedded) -> None:
        self._world = world

    def inject(self) -> str:
        self._world.kill()
        return "kill -9 of the server"

    def heal(self) -> None:
        self._world.start()
