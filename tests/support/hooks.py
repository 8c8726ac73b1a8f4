"""The part of a cluster that an API server alone is not: who runs the jobs and pods that `helm` waits for.

`Kubelet` watches a namespace for pods to run (of jobs, and bare ones) while a `helm` command waits for them, hands each to `run`, and
writes down how it ended. What runs them is the test's: a process, or a container.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from support.kubectl import Kubectl

Object = dict[str, Any]
Run = Callable[[str, Object], int]
"""Runs a pod, given its name and spec, and returns the exit code."""


@contextmanager
def running_what_helm_waits_for(kubectl: Kubectl, run: Run) -> Iterator[list[str]]:
    """Run the jobs and pods that appear, and yield the list of their names. An error in `run` is raised at the end."""
    stop = threading.Event()
    done: list[str] = []
    failures: list[BaseException] = []

    def loop() -> None:
        seen: set[str] = set()
        while not stop.is_set():
            try:
                for found in kubectl.json("get", "jobs,pods")["items"]:
                    uid = found["metadata"]["uid"]
                    if uid not in seen and not _ended(found):
                        seen.add(uid)
                        _finish(kubectl, found, run)
                        done.append(found["metadata"]["name"])
            except BaseException as error:
                failures.append(error)
                return
            stop.wait(0.2)

    thread = threading.Thread(target=loop, daemon=True)
    thread.start()
    try:
        yield done
    finally:
        stop.set()
        thread.join()
    if failures:
        raise failures[0]


def _ended(found: Object) -> bool:
    status = found.get("status") or {}
    return status.get("phase") in ("Succeeded", "Failed") or bool(status.get("conditions"))


def _finish(kubectl: Kubectl, found: Object, run: Run) -> None:
    name, kind = found["metadata"]["name"], found["kind"]
    if kind == "Pod":
        code = run(name, found["spec"])
        status: Object = {"phase": "Failed" if code else "Succeeded"}
    else:
        code = run(name, found["spec"]["template"]["spec"])
        now = "2026-01-01T00:00:00Z"
        ends = ("FailureTarget", "Failed") if code else ("SuccessCriteriaMet", "Complete")
        status = {"startTime": now, "conditions": [{"type": end, "status": "True", "lastTransitionTime": now} for end in ends]}
        status |= {"failed": 1} if code else {"succeeded": 1, "completionTime": now}
    kubectl("patch", kind.lower(), name, "--subresource=status", "--type=merge", "-p", json.dumps({"status": status}))


def account_directory(kubectl: Kubectl, account: str, directory: Any, ca: bytes) -> None:
    """What a pod of that service account finds mounted."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "token").write_text(kubectl("create", "token", account))
    (directory / "namespace").write_text(kubectl.namespace)
    (directory / "ca.crt").write_bytes(ca)
