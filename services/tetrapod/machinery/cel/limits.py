"""Limits of the cost of evaluations, and the size limit of a request.

Upstream: k8s.io/apiserver/pkg/apis/cel/config.go.
"""

from typing import Final

PER_CALL_LIMIT: Final = 1_000_000  # cost of one evaluation
RUNTIME_BUDGET: Final = 10_000_000  # cost of all evaluations of one object or one policy
MATCH_CONDITIONS_BUDGET: Final = RUNTIME_BUDGET // 4
MAX_REQUEST_SIZE: Final = 3 * 1024 * 1024  # bytes
