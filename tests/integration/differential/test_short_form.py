"""The short form of `make differential`: a few requests of each generator, which both servers answer equally."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from differential.generators import GENERATORS
from differential.report import Report
from differential.schemas import Schemas
from differential.servers import Pair, pair

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    with pair(tmp_path_factory.mktemp("differential")) as both:
        yield both


@pytest.fixture(scope="module")
def schemas(both: Pair) -> Schemas:
    return Schemas.fetch(both.original)


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("generator", "only", "count"),
    [
        ("objects", "(pods|services|deployments|roles|jobs)/full", 10),
        ("custom", "", 3),
        ("directives", "(services|deployments|configmaps)/full", 1),
        ("managers", "(services|deployments|configmaps)/full", 3),
        ("selectors", "/full", 1),
        ("scenarios", "core-svc-lb", 2),
    ],
)
def test_generated_requests_are_answered_as_by_kube_apiserver(
    both: Pair, schemas: Schemas, generator: str, only: str, count: int
) -> None:
    report = Report()

    GENERATORS[generator](both, schemas, report, 1, count, only)

    assert report.exchanges[generator] > 50
    assert not report.found, report.summary()
