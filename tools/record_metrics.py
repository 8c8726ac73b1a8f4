"""Record the metrics of a kube-apiserver after the load of tests/support/metric_load.py.

    python tools/record_metrics.py https://127.0.0.1:6443 > tests/integration/metrics/upstream.json

The server must accept the tokens of tests/contract/tokens.csv. Metrics of the Go runtime and of Go's gRPC client are
left out.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from support.metric_load import Family, families, metric_load

_GO = ("go_", "grpc_client_")


def main(url: str) -> None:
    with metric_load(url) as ask:
        recorded = {path: families(ask("GET", path)[1].decode()) for path in ("/metrics", "/metrics/slis")}
    kept = {
        path: {name: family for name, family in found.items() if not name.startswith(_GO)}
        for path, found in recorded.items()
    }
    print("{\n" + ",\n".join(f"{json.dumps(path)}: {_lines(found)}" for path, found in kept.items()) + "\n}")


def _lines(found: Mapping[str, Family]) -> str:
    """Format the metric families as a JSON object with one line each."""
    return (
        "{\n"
        + ",\n".join(f"{json.dumps(name)}: {json.dumps(family)}" for name, family in sorted(found.items()))
        + "\n}"
    )


if __name__ == "__main__":
    main(sys.argv[1])
