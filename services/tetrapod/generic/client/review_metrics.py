"""The metrics of TokenReviews and SubjectAccessReviews, by which a server delegates its decisions to another one.

Upstream: staging/src/k8s.io/apiserver/pkg/authentication/authenticatorfactory/metrics.go and
pkg/authorization/authorizerfactory/metrics.go
"""

from __future__ import annotations

import time
from typing import Final

from tetrapod.generic.client.interface import Client
from tetrapod.generic.metrics.counters import Counter
from tetrapod.generic.metrics.histograms import Histogram
from tetrapod.machinery.gvk import GroupVersionResource, Object
from tetrapod.machinery.status import StatusError

_CODE: Final = ("code",)
_BUCKETS: Final = (0.25, 0.5, 0.7, 1, 1.5, 3, 5, 10)
_CREATED: Final = "201"


class ReviewMetrics:
    """The number and latency of the reviews of one kind, by the status code of their responses.

    Args:
        subsystem: `authn` or `authz`, which is part of the names of the metrics.
    """

    def __init__(self, subsystem: str) -> None:
        prefix = f"apiserver_delegated_{subsystem}_request_"
        self._total = Counter(f"{prefix}total", "Number of HTTP requests partitioned by status code.", _CODE)
        self._seconds = Histogram(
            f"{prefix}duration_seconds", "Request latency in seconds. Broken down by status code.", _CODE, _BUCKETS
        )

    async def create(self, client: Client, resource: GroupVersionResource, review: Object) -> Object:
        """Create a review, record its latency and code, and return it with its status.

        As upstream, the code is `<error>` if the server did not respond.

        Raises:
            StatusError: the server rejected the review.
            Unavailable: the server is not available.
            OSError: the connection failed.
        """
        began, code = time.monotonic(), "<error>"
        try:
            reviewed = await client.create(resource, "", review)
            code = _CREATED
        except StatusError as error:
            code = str(error.code)
            raise
        finally:
            self._total.add((code,))
            self._seconds.observe((code,), time.monotonic() - began)
        return reviewed
