"""The cost of thousands of idle definitions: memory, time until a new one is served, cold start, discovery, OpenAPI,
and latency for others.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from bench import objects, processes, wrk
from bench.client import Client, Rejected
from bench.targets import TOKEN, Target

CRDS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
DISCOVERY: Final = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
_MB: Final = 1_000_000
_SINGLE: Final = 20
"""The number of definitions that are created one after the other, each requested until it is served."""


class Definitions:
    """Measure a newly started target (`fresh`): memory freed by earlier work would hide what the definitions use."""

    def __init__(self, target: Target, count: int, directory: Path, put: Callable[[str, float], None]) -> None:
        self._target = target
        self._count = count
        self._directory = directory
        self._put = put

    @property
    def _client(self) -> Client:
        return Client(self._target.url, TOKEN)

    def _resident(self) -> int:
        return sum(map(processes.resident, self._target.pids))

    def measure(self) -> None:
        self._target.start()
        processes.settle(self._target.pids)
        before = self._resident()
        asyncio.run(self._client.create_all(CRDS, map(objects.crd, range(self._count))))
        asyncio.run(self._until_served(self._count - 1))
        processes.settle(self._target.pids, timeout=30)
        self._put("crd", (self._resident() - before) / self._count / _MB)
        self._put("crd-served", asyncio.run(self._served()) * 1e3)
        self._discovery()
        self._target.stop()
        self._put("crd-start", self._target.start())
        asyncio.run(self._until_served(self._count - 1))
        processes.settle(self._target.pids)
        self._openapi()

    async def _until_served(self, number: int) -> float:
        """Return the seconds until objects of the definition can be listed."""
        path = f"/apis/crds.{objects.GROUP}/v1/namespaces/default/things{number}"
        connection = await self._client.connection()
        begun = time.monotonic()
        try:
            while (await connection.request("GET", path)).status != 200:
                if time.monotonic() > begun + 60:
                    raise Rejected(f"definition {number} is not served after a minute")
                await asyncio.sleep(0.002)
        finally:
            connection.close()
        return time.monotonic() - begun

    async def _served(self) -> float:
        """Return the median time in seconds from the response to the creation of a definition until it is served."""
        waits = []
        for number in range(self._count, self._count + _SINGLE):
            await self._client.create(CRDS, objects.crd(number))
            waits.append(await self._until_served(number))
        return sorted(waits)[_SINGLE // 2]

    def _discovery(self) -> None:
        """Return the median of warm responses, without any other request."""
        load = wrk.Load("/apis", accept=DISCOVERY)
        wrk.run(self._target.url, TOKEN, load, 1, self._directory, connections=1)
        self._put("crd-discovery", wrk.run(self._target.url, TOKEN, load, 1, self._directory, connections=1).p50_ms)

    def _openapi(self) -> None:
        """Fetch /openapi/v2 with one client, for the first time and again, while another client keeps sending small
        requests.
        """
        for pid in self._target.pids:
            processes.reset_peak(pid)
        before = {pid: processes.resident(pid) for pid in self._target.pids}
        size, seconds, stall = asyncio.run(self._fetch_and_probe("/openapi/v2"))
        grown = max(processes.peak_resident(pid) - before[pid] for pid in self._target.pids)
        self._put("crd-openapi", seconds)
        self._put("crd-openapi-peak", grown / size)
        self._put("crd-stall", stall * 1e3)

    async def _fetch_and_probe(self, path: str) -> tuple[int, float, float]:
        """Fetch a path with curl.

        Return the size of the response, its time in seconds, and the longest small request during that time.

        Raises:
            Rejected: the request failed, or a definition is missing from the response.
        """
        output = "%{size_download} %{http_code}"
        file = self._directory / "openapi"
        argv = [
            "curl",
            "-sk",
            "-o",
            str(file),
            "-w",
            output,
            "-H",
            f"Authorization: Bearer {TOKEN}",
            f"{self._target.url}{path}",
        ]
        connection = await self._client.connection()
        longest = 0.0
        try:
            begun = time.monotonic()
            curl = await asyncio.create_subprocess_exec(*argv, stdout=asyncio.subprocess.PIPE)
            ended = asyncio.create_task(curl.communicate())
            while not ended.done():
                asked = time.monotonic()
                await connection.request("GET", "/api/v1/namespaces/default")
                longest = max(longest, time.monotonic() - asked)
                await asyncio.sleep(0.001)
            seconds = time.monotonic() - begun
        finally:
            connection.close()
        size, status = ended.result()[0].split()
        if status != b"200":
            raise Rejected(f"GET {path}: {status.decode()}")
        written = set(re.findall(rb'"kind":"Thing(\d+)","version"', file.read_bytes()))
        file.unlink()
        if len(written) < self._count:
            raise Rejected(f"GET {path}: {len(written)} of {self._count} definitions")
        return int(size), seconds, longest
