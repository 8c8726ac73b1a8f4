"""The endpoint of a kubelet from which metrics-server reads the usage of nodes and pods."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from support.webhook import Answer, WebhookServer, webhook_server

_MEMORY = 64 * 1024 * 1024


@dataclass
class Usage:
    """The usage that the kubelet reports.

    Attributes:
        pods: returns the pods of the node.
        cores: the CPU cores that each container uses from now on.
    """

    pods: Callable[[], list[Any]]
    cores: float
    _started: float = field(default_factory=time.time)
    _seconds: dict[tuple[str, str, str], tuple[float, float]] = field(default_factory=dict)
    """The time of the last report, in Unix time, and the CPU seconds up to it, of each container."""

    def render(self) -> str:
        """Return the metrics in Prometheus' text format, with their times in milliseconds.

        Upstream: pkg/kubelet/metrics/collectors/resource_metrics.go.
        """
        now = int(time.time() * 1000) / 1000
        lines = [
            f"node_cpu_usage_seconds_total {now - self._started + 1} {int(now * 1000)}",
            f"node_memory_working_set_bytes {_MEMORY * 10} {int(now * 1000)}",
        ]
        for pod in self.pods():
            for container in pod["spec"]["containers"]:
                names = (container["name"], pod["metadata"]["name"], pod["metadata"]["namespace"])
                last, seconds = self._seconds.get(names, (now - 1, 0.0))
                seconds += (now - last) * self.cores
                self._seconds[names] = (now, seconds)
                labels = '{{container="{}",pod="{}",namespace="{}"}}'.format(*names)
                lines += [
                    f"container_cpu_usage_seconds_total{labels} {seconds} {int(now * 1000)}",
                    f"container_memory_working_set_bytes{labels} {_MEMORY} {int(now * 1000)}",
                    f"container_start_time_seconds{labels} {self._started - 60}",
                ]
        return "\n".join(lines) + "\n"


@contextmanager
def kubelet_metrics(directory: Path, usage: Usage) -> Iterator[WebhookServer]:
    """Serve the usage at /metrics/resource on 127.0.0.1. The CA is written to `kubelet-ca.crt` in `directory`."""
    with webhook_server() as server:
        (directory / "kubelet-ca.crt").write_bytes(server.authority.certificate_pem)
        plain = {"content-type": "text/plain; version=0.0.4"}
        server.on("/metrics/resource", lambda _: Answer(200, usage.render().encode(), plain))
        yield server
