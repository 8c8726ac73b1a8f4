"""Samples of py-spy are classified by their innermost frame that belongs to a class."""

from __future__ import annotations

import pytest

from bench.profiles import class_of, page, shares_of

LOOP = ("up (tetrapod/cli/up.py:31)", "run (uvloop/__init__.py:92)", "Runner.run (asyncio/runners.py:118)")
HANDLER = "Exchange.run (tetrapod/generic/http/exchange.py:272)"


@pytest.mark.parametrize(
    ("innermost", "expected"),
    [
        ((), "event loop, TLS, sockets"),
        ((HANDLER,), "HTTP"),
        ((HANDLER, "loads (json/__init__.py:346)"), "HTTP"),
        ((HANDLER, "Store.get (tetrapod/generic/registry/store.py:9)"), "handlers, registry"),
        ((HANDLER, "Cache.get (tetrapod/generic/storage/cacher/cache.py:9)"), "store, watch cache"),
        ((HANDLER, "validate_pod (tetrapod/core/v1/pods/validation.py:9)"), "validation, defaults"),
        ((HANDLER, "admit (tetrapod/core/admission/priority.py:9)"), "admission"),
        ((HANDLER, "merge (tetrapod/machinery/fieldmanager/merge.py:9)"), "managed fields, patches"),
    ],
)
def test_a_sample_belongs_to_the_class_of_its_innermost_known_frame(innermost: tuple[str, ...], expected: str) -> None:
    assert class_of([*LOOP, *innermost]) == expected


def test_samples_are_counted_by_class() -> None:
    idle = ("_bootstrap (threading.py:1002)", "_worker (concurrent/futures/thread.py:81)")
    lines = [
        f"{';'.join(idle)} 9",
        f"{';'.join((*LOOP, HANDLER))} 3",
        f"{';'.join(LOOP)} 1",
        f"{';'.join((*LOOP, HANDLER, 'x (y.py:1)'))} 2",
    ]
    assert shares_of("\n".join(lines)) == {"HTTP": 5, "event loop, TLS, sockets": 1}


def test_the_page_has_a_row_for_each_measured_work() -> None:
    text = page({"One process": {"get": {"HTTP": 0.75, "handlers, registry": 0.25}}}, "2026-01-01", "abc")
    assert "| work | HTTP | handlers, registry | other |" in text
    assert "| GET one ConfigMap | 75 | 25 |  |" in text
