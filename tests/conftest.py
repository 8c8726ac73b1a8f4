"""Settings of every test run.

Hypothesis tries the same examples each time, so that every developer sees the same failures; `make fuzz` tries new
ones. With REQUIRE_TOOLS=1, as in CI, a test fails if it would be skipped because a tool is missing. The summary lists
the tests that needed a retry.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Generator
from typing import Final

import pytest
from hypothesis import settings

from support.forms import ETCD, SQLITE, STOCK

# As in the Makefile: without bytecode, each server that a test starts would compile a thousand modules.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

settings.register_profile("steady", derandomize="FUZZ_EXAMPLES" not in os.environ, deadline=None)
settings.load_profile("steady")

NOT_APPLICABLE = "not applicable: "
"""The prefix of skip reasons that do not name a missing tool. CI accepts these skips."""
RETRIED = "retried"
"""The property of a test that passed at its second try."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark as long the forms of tests that `make test` leaves to CI.

    `make test` does not build a kube-apiserver. It runs no test of one process over etcd that runs over SQLite too, and
    none on the event loop of asyncio that runs on uvloop's too.
    """
    functions = [item for item in items if isinstance(item, pytest.Function) and hasattr(item, "callspec")]
    forms = {(_test_of(item), form) for item in functions for form in _forms_of(item)}
    for item in functions:
        left_out = {STOCK} | {other for form, other in _REPLACED.items() if (_test_of(item), form) in forms}
        if left_out & _forms_of(item):
            item.add_marker(pytest.mark.long)


_REPLACED: Final = {SQLITE: ETCD, "uvloop": "asyncio"}
"""For each form, the form that `make test` leaves out if it runs this one."""


def _test_of(item: pytest.Function) -> tuple[object, str]:
    return item.path, item.originalname


def _forms_of(item: pytest.Function) -> set[str]:
    """Return the parameters of a test that may be names of forms: those of its fixtures, and the parts of its ID."""
    return {value for value in item.callspec.params.values() if isinstance(value, str)} | {*item.callspec.id.split("-")}


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Turn skips into failures if REQUIRE_TOOLS=1."""
    report = yield
    if os.environ.get("REQUIRE_TOOLS") == "1" and report.skipped and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        if NOT_APPLICABLE not in reason:
            report.outcome = "failed"
            report.longrepr = f"REQUIRE_TOOLS=1, and the test was skipped: {reason}"
    return report


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """End the run with the code of an interrupted one if a module could not be imported.

    With pytest-xdist the other tests run on, and the code would be that of failed tests, which are run once more.
    """
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None and any(isinstance(one, pytest.CollectReport) for one in reporter.stats.get("error", [])):
        session.exitstatus = pytest.ExitCode.INTERRUPTED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Name the tests that passed at their second try, whichever worker ran them."""
    reports = [report for outcome in ("passed", "failed") for report in terminalreporter.stats.get(outcome, [])]
    retried = sorted(report.nodeid for report in reports if (RETRIED, True) in getattr(report, "user_properties", []))
    if retried:
        terminalreporter.section(f"{len(retried)} tried twice")
        for nodeid in retried:
            terminalreporter.line(nodeid)
