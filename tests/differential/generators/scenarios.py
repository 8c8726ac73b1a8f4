"""Variants of the requests of recorded scenarios, each in the state that the scenario has reached."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

from contract.replaying import RECORDINGS
from differential.report import Report
from differential.requests import variants
from differential.scenes import scene
from differential.schemas import Schemas
from differential.servers import Pair

NAME = "scenarios"


def run(pair: Pair, schemas: Schemas, report: Report, seed: int, count: int, only: str) -> None:
    """Replay the scenarios whose names begin with `only`, and send `count` variants before each step."""
    for scenario in recorded(only):
        with scene(pair, scenario) as at:
            for number, step in enumerate(scenario["steps"], 1):
                rng = random.Random(f"{seed} {scenario['name']} {number}")
                waits = "until" in step or "until_status" in step  # the servers may be in different states before it
                difference = at.perform(step, number) if waits else None
                for variant in variants(step, schemas, rng, count):
                    report.add(NAME, at.ask(variant, number))
                difference = difference if waits else at.perform(step, number)
                if step.get("record") is not False:
                    report.add(NAME, difference)


def recorded(only: str) -> Iterator[dict[str, Any]]:
    """Yield the recorded scenarios whose names begin with a text, without their answers."""
    for path in RECORDINGS:
        if path.stem.startswith(only):
            scenario = json.loads(path.read_text())
            yield scenario | {"steps": [{k: v for k, v in s.items() if k != "answer"} for s in scenario["steps"]]}
