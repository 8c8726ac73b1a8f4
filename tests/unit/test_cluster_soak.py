"""Tests of the parts of tests/cluster_soak that start no cluster."""

from __future__ import annotations

import datetime
import signal
import sys
from pathlib import Path

import pytest

from cluster.processes import Processes
from cluster.settings import NODES
from cluster_soak import report
from cluster_soak.programs import Program, Sample
from cluster_soak.report import failures
from cluster_soak.run import Outcome
from cluster_soak.verdict import growths
from support.waiting import until

OUTLIVES = pytest.mark.filterwarnings("ignore:subprocess .* is still running:ResourceWarning")  # processes are meant to
MIB = 1 << 20
READY = "import os, signal, sys; open(sys.argv[1], 'a').write(os.environ['WORD']); signal.pause()"


def text_of(path: Path) -> str:
    return path.read_text() if path.exists() else ""


WITHOUT_FIRST_THREAD = """
import ctypes, pathlib, sys, threading, time

def wait():
    while not pathlib.Path(sys.argv[1]).exists():
        time.sleep(0.01)

threading.Thread(target=wait).start()
ctypes.CDLL(None).pthread_exit(None)
"""


def samples(memory: list[int], threads: list[int] | None = None) -> list[Sample]:
    others = threads or [10] * len(memory)
    return [Sample(60.0 * n, size * MIB, 30, count) for n, (size, count) in enumerate(zip(memory, others, strict=True))]


@pytest.mark.parametrize(
    ("memory", "threads", "failed"),
    [
        ([100] * 20, [10] * 20, []),
        ([100, 400, *[100] * 18], [10] * 20, []),  # an outlier
        ([100 + 5 * n for n in range(20)], [10] * 20, ["memory"]),
        ([20, 60, 90, 98, *[100] * 16], [10] * 20, []),  # the warm-up
        ([100] * 20, [10 + 3 * n for n in range(20)], ["threads"]),
    ],
)
def test_growth_is_judged_by_a_robust_line_after_the_warm_up(
    memory: list[int], threads: list[int], failed: list[str]
) -> None:
    assert [growth.name for growth in growths(samples(memory, threads)) if growth.failed] == failed


def test_a_program_that_cannot_be_judged_is_a_failure() -> None:
    outcome = Outcome(failures=["round 1: node node1 is not ready"], samples={"kubelet": samples([1, 2])})
    assert failures(outcome) == [
        "round 1: node node1 is not ready",
        "kubelet has fewer than 6 samples after the warm-up",
    ]


def test_the_page_keeps_the_results_of_other_forms(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "_OUT", tmp_path / "page.md")
    for form, rounds in (("four", 1), ("one", 2), ("four", 3)):
        outcome = Outcome(rounds=rounds, seconds=60, convergence=[1.0, 2.0])
        report.write(form, outcome, "abc")
    today = datetime.date.today()
    lines = (tmp_path / "page.md").read_text().splitlines()
    assert [line for line in lines if line.startswith("## ") or " rounds in " in line] == [
        "## One process, SQLite",
        f"2 rounds in 1 minutes on {today}, at commit abc.",
        "## Four services, etcd",
        f"3 rounds in 1 minutes on {today}, at commit abc.",
    ]


@OUTLIVES
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_process_restarts_with_its_arguments_and_environment(tmp_path: Path, number: signal.Signals) -> None:
    processes, written = Processes(tmp_path / "processes", tmp_path / "logs"), tmp_path / "written"
    try:
        pid = processes.start("program", [sys.executable, "-c", READY, str(written)], {"WORD": "started\n"})
        until(lambda: text_of(written), lambda text: text == "started\n")
        Program("program", processes).restart(number)
        until(lambda: text_of(written), lambda text: text == "started\n" * 2)
        assert processes.pid("program") not in (None, pid)
    finally:
        processes.stop("program", number=signal.SIGKILL)


def state_of(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


@OUTLIVES
def test_a_process_runs_until_all_of_its_threads_have_ended(tmp_path: Path) -> None:
    processes, end = Processes(tmp_path / "processes", tmp_path / "logs"), tmp_path / "end"
    pid = processes.start("program", [sys.executable, "-c", WITHOUT_FIRST_THREAD, str(end)])
    try:
        until(lambda: state_of(pid) == "Z")
        assert processes.pid("program") == pid
        end.touch()
        until(lambda: processes.pid("program") is None)
    finally:
        processes.stop("program", number=signal.SIGKILL)


def test_a_node_without_process_has_no_programs(tmp_path: Path) -> None:
    processes = Processes(tmp_path / "processes", tmp_path / "logs")
    assert Program("kubelet", processes, NODES[0]).pid() is None
