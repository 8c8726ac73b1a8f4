"""Every field of every built-in kind with unusual values: in a creation, an update, and the status.

`objects` chooses places of an object at random. This generator visits each field of the schema, also the unset ones.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from differential.corpus import Example, examples
from differential.mutations import Mutation, every
from differential.paths import text
from differential.report import Report
from differential.requests import Step, with_query
from differential.scenes import Scene, scene
from differential.schemas import Schemas
from differential.servers import Pair

NAME: Final = "sweeps"


def run(pair: Pair, schemas: Schemas, report: Report, seed: int, count: int, only: str) -> None:
    """Change each field `count` times in creations, and as often in updates."""
    sweep = _Sweep(schemas, count)
    with scene(pair, {"name": "differential-sweeps"}) as at:
        for example in examples(schemas, only):
            rng = random.Random(f"{seed} {example.path}")
            for step in sweep.creations(example, rng):
                report.add(NAME, at.ask(step))
            report.add(NAME, at.perform({"request": f"POST {example.collection}", "body": example.body}))
            for step in sweep.updates(at, example, rng):
                report.add(NAME, at.ask(step))
            at.remove(example.path)


@dataclass
class _Sweep:
    """The requests of a run, which change no field more than `count` times in all examples of a resource."""

    schemas: Schemas
    count: int

    def __post_init__(self) -> None:
        self._changes: Counter[tuple[str, str]] = Counter()

    def creations(self, example: Example, rng: random.Random) -> Iterator[Step]:
        request = with_query(f"POST {example.collection}", "dryRun=All")
        for mutation in self._mutations(request, example.body, rng):
            yield {"request": request, "body": mutation.apply(example.body), "about": str(mutation)}

    def updates(self, at: Scene, example: Example, rng: random.Random) -> Iterator[Step]:
        """Yield updates of the stored object: of its status by the subresource, and of all else by the object."""
        stored = at.stored(example.path)
        if stored is None:
            return
        for mutation in self._mutations(f"PUT {example.collection}", stored, rng):
            path = f"{example.path}/status" if mutation.path[:1] == ("status",) else example.path
            yield {"request": f"PUT {path}?dryRun=All", "body": mutation.apply(stored), "about": str(mutation)}

    def _mutations(self, request: str, body: dict[str, Any], rng: random.Random) -> Iterator[Mutation]:
        """Yield mutations of the fields that fewer than `count` mutations of such a request have changed."""
        places: defaultdict[str, list[Mutation]] = defaultdict(list)
        for mutation in every(body, self.schemas, self.schemas.of(body), rng):
            places[text(mutation.path)].append(mutation)
        for place, mutations in places.items():
            chosen = rng.sample(mutations, min(len(mutations), self.count - self._changes[request, place]))
            self._changes[request, place] += len(chosen)
            yield from chosen
