"""A substitute for kubelet and job controller: runs the jobs and pods that a `helm` command waits for.

It polls a namespace for jobs and bare pods, passes each to a `run` function of the test (which starts a process or a
container), and writes the result to the object's status.
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
def running_jobs_and_pods(kubectl: Kubectl, run: Run) -> Iterator[list[str]]:
    """Run the jobs and pods that appear, and yield the list of their names. An error in `run` is raised at the end."""
    stop = threading.Event()
    done: list[str] = []
    failures: list[BaseException] = []

    def loop() -> None:
        seen: set[str] = set()
        while not stop.is_set():
            try:
                for obj in kubectl.json("get", "jobs,pods")["items"]:
                    uid = obj["metadata"]["uid"]
                    if uid not in seen and not _ended(obj):
                        seen.add(uid)
                        _finish(kubectl, obj, run)
                        done.append(obj["metadata"]["name"])
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


def _ended(obj: Object) -> bool:
    status = obj.get("status") or {}
    return status.get("phase") in ("Succeeded", "Failed") or bool(status.get("conditions"))


def _finish(kubectl: Kubectl, obj: Object, run: Run) -> None:
    name, kind = obj["metadata"]["name"], obj["kind"]
    if kind == "Pod":
        code = run(name, obj["spec"])
        status: Object = {"phase": "Failed" if code else "Succeeded"}
    else:
        code = run(name, obj["spec"]["template"]["spec"])
        now = "2026-01-01T00:00:00Z"
        ends = ("FailureTarget", "Failed") if code else ("SuccessCriteriaMet", "Complete")
        status = {
            "startTime": now,
            "conditions": [{"type": end, "status": "True", "lastTransitionTime": now} for end in ends],
        }
        status |= {"failed": 1} if code else {"succeeded": 1, "completionTime": now}
    kubectl("patch", kind.lower(), name, "--subresource=status", "--type=merge", "-p", json.dumps({"status": status}))


def write_account_directory(kubectl: Kubectl, account: str, directory: Any, ca: bytes) -> None:
    """Write the files that a pod with this service account has mounted: token, namespace and CA certificate."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "token").write_text(kubectl("create", "token", account))
    (directory / "namespace").write_text(kubectl.namespace)
    (directory / "ca.crt").write_bytes(ca)
