"""`aggregate_errors`: several errors as one text.

Upstream: staging/src/k8s.io/apimachinery/pkg/util/errors/errors.go, aggregate.Error
"""

from __future__ import annotations

from collections.abc import Iterable


def aggregate_errors(errors: Iterable[object]) -> str:
    """Return the distinct errors as one text.

    Returns:
        A single error without changes; several errors in brackets, separated by commas; "" if `errors` is empty.
    """
    texts = list(dict.fromkeys(map(str, errors)))
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]" if texts else ""
