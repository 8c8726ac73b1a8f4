"""Metrics of the duration of CEL rules and of ratcheting.

Upstream: k8s.io/apiserver/pkg/cel/metrics, apiextensions-apiserver/pkg/apiserver/validation.
"""

from __future__ import annotations

from typing import Final

from tetrapod.generic.metrics.collectors import Histogram
from tetrapod.machinery.schema.cel_compile_times import COMPILED

_DEFAULT: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
_COMPILATION: Final = Histogram(
    "apiserver_cel_compilation_duration_seconds", "CEL compilation time in seconds.", (), _DEFAULT
)
EVALUATION: Final = Histogram(
    "apiserver_cel_evaluation_duration_seconds", "CEL evaluation time in seconds.", (), _DEFAULT
)
RATCHETING: Final = Histogram(
    "apiextensions_apiserver_validation_ratcheting_seconds",
    "Time for comparison of old to new for the purposes of CRDValidationRatcheting during an UPDATE in seconds.",
    (),
    tuple(0.00001 * 4**i for i in range(10)),
)
COMPILED.append(lambda seconds: _COMPILATION.observe((), seconds))
