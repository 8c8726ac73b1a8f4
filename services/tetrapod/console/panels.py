"""The panels of the page: what each reads, and what it shows of that."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from tetrapod.console import exposition
from tetrapod.console.reads import ReadError, Reads, error_message
from tetrapod.console.traffic import Sample, Traffic

Panel = Callable[[], Awaitable[Any]]
"""Reads the state of a panel. Raises ReadError if the server does not provide it."""

LIMIT: Final = 500
"""The number of objects of a list that are read."""
_CHECK: Final = re.compile(r"^\[([+-])\](\S+)(?: (.*))?$", re.MULTILINE)


def panels(reads: Reads, sources: Mapping[str, str]) -> dict[str, Panel]:
    """Return all panels by name.

    Args:
        reads: the API server.
        sources: the processes whose metrics are added up: their URLs by name. "" is the URL of the API server.
    """
    traffic = TrafficPanel(reads, sources)

    async def server() -> Any:
        return await _server(reads)

    async def leases() -> Any:
        return _leases(await reads.object(f"/apis/coordination.k8s.io/v1/leases?limit={LIMIT}"), datetime.now(UTC))

    async def apiservices() -> Any:
        return _apiservices(await reads.object("/apis/apiregistration.k8s.io/v1/apiservices"))

    async def crds() -> Any:
        path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions?limit={LIMIT}"
        return _crds(await reads.object(path))

    return {"server": server, "traffic": traffic, "leases": leases, "apiservices": apiservices, "crds": crds}


class TrafficPanel:
    """Requests, latencies, watches and watch caches, from the metrics of all processes."""

    def __init__(self, reads: Reads, sources: Mapping[str, str]) -> None:
        self._reads = reads
        self._sources = sources
        self._traffic = Traffic()
        self._busy: dict[str, tuple[float, float]] = {}
        """When a process was sampled, and its CPU seconds then."""

    async def __call__(self) -> dict[str, Any]:
        """Sample all processes.

        Raises:
            ReadError: no process could be sampled.
        """
        answers = await asyncio.gather(*(self._sample(url) for url in self._sources.values()))
        samples: dict[str, Sample] = {}
        processes = []
        for (name, url), answer in zip(self._sources.items(), answers, strict=True):
            process: dict[str, Any] = {"name": name, "url": url or self._reads.url, "error": None}
            if isinstance(answer, Sample):
                samples[name] = answer
                process |= self._process(name, answer)
            else:
                process["error"] = {"status": answer[0], "message": answer[1]}
            processes.append(process)
        if not samples:
            error = processes[0]["error"]
            raise ReadError(error["status"], error["message"])
        return {**self._traffic.add(samples), "processes": processes}

    async def _sample(self, url: str) -> Sample | tuple[int, str]:
        """Return the series of a process, or status and message of the error."""
        try:
            page = await self._reads.text("/metrics", url)
            return Sample(time.monotonic(), exposition.read(page))
        except ReadError as error:
            return error.status, str(error)
        except ValueError as error:
            return 200, f"/metrics is malformed: {error}"

    def _process(self, name: str, sample: Sample) -> dict[str, Any]:
        seconds = sample.series["process_cpu_seconds_total"].get(())
        cpu = None
        if seconds is not None:
            if name in self._busy:
                at, before = self._busy[name]
                cpu = max(seconds - before, 0.0) / max(sample.at - at, 1e-3)
            self._busy[name] = (sample.at, seconds)
        return {"cpu": cpu, "memory": sample.series["process_resident_memory_bytes"].get(())}


async def _server(reads: Reads) -> dict[str, Any]:
    """Return the version and the checks of the server. Each may be forbidden without the other."""
    version, ready = await asyncio.gather(_version(reads), reads.fetch("/readyz?verbose", accept="text/plain"))
    checks = [
        {"name": name, "ok": sign == "+", "text": text}
        for sign, name, text in _CHECK.findall(ready.body.decode("utf-8", "replace"))
    ]
    error = None
    if not checks:
        error = {"status": ready.status, "message": error_message(ready)}
    return {"url": reads.url, "version": version, "ready": ready.status == 200, "checks": checks, "error": error}


async def _version(reads: Reads) -> str:
    try:
        return str((await reads.object("/version")).get("gitVersion", ""))
    except ReadError as error:
        if not error.status:
            raise
        return ""


def _leases(answer: Any, now: datetime) -> dict[str, Any]:
    rows = []
    for lease in answer.get("items") or []:
        metadata, spec = lease["metadata"], lease.get("spec") or {}
        holder, duration = spec.get("holderIdentity") or "", spec.get("leaseDurationSeconds")
        age = _seconds_since(spec.get("renewTime"), now)
        state = "released" if not holder else "held"
        if holder and age is not None and duration is not None and age > duration:
            state = "expired"
        rows.append(
            {
                "namespace": metadata.get("namespace", ""),
                "name": metadata["name"],
                "holder": holder,
                "state": state,
                "renewed": age,
                "duration": duration,
                "transitions": spec.get("leaseTransitions") or 0,
            }
        )
    return {"rows": rows, "more": _remaining(answer)}


def _apiservices(answer: Any) -> dict[str, Any]:
    rows = []
    for item in answer.get("items") or []:
        spec = item.get("spec") or {}
        service = spec.get("service")
        available = next((c for c in _conditions(item) if c["type"] == "Available"), None)
        rows.append(
            {
                "name": item["metadata"]["name"],
                "service": f"{service.get('namespace', '')}/{service.get('name', '')}" if service else "Local",
                "available": available["status"] if available else "Unknown",
                "reason": available["reason"] if available else "",
                "message": available["message"] if available else "",
            }
        )
    return {"rows": rows, "more": _remaining(answer)}


def _crds(answer: Any) -> dict[str, Any]:
    rows = []
    for item in answer.get("items") or []:
        spec, status = item.get("spec") or {}, item.get("status") or {}
        rows.append(
            {
                "name": item["metadata"]["name"],
                "kind": (spec.get("names") or {}).get("kind", ""),
                "scope": spec.get("scope", ""),
                "versions": [
                    {"name": v.get("name", ""), "served": bool(v.get("served")), "storage": bool(v.get("storage"))}
                    for v in spec.get("versions") or []
                ],
                "stored": status.get("storedVersions") or [],
                "conditions": _conditions(item),
            }
        )
    return {"rows": rows, "more": _remaining(answer)}


def _conditions(item: Any) -> list[dict[str, str]]:
    return [
        {key: str(condition.get(key) or "") for key in ("type", "status", "reason", "message")}
        for condition in (item.get("status") or {}).get("conditions") or []
    ]


def _remaining(answer: Any) -> int:
    """Return the number of objects that a list does not contain because of its limit."""
    return int((answer.get("metadata") or {}).get("remainingItemCount") or 0)


def _seconds_since(text: str | None, now: datetime) -> float | None:
    """Return the seconds from a time in an object until `now`; None if it is unset or malformed."""
    try:
        return (now - datetime.fromisoformat(text)).total_seconds() if text else None
    except (ValueError, TypeError):
        return None
