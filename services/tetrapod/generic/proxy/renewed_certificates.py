"""Notices that the file of a client certificate was replaced, so that connections with the former one are given up.

Upstream: k8s.io/client-go/transport/cert_rotation.go, which also ends the requests on such connections, every five
minutes.
"""

from __future__ import annotations

import time
from typing import Final

from tetrapod.generic.configuration.watching import Stamp, stamp

_PERIOD: Final = 1.0
"""Seconds between two looks at a file."""


class RenewedCertificates:
    """The client certificates of a pool, with the state of their files at the last look.

    Attributes:
        count: how often a file was found to be replaced. A connection that was made at another count may use a former
            certificate.
    """

    def __init__(self) -> None:
        self.count = 0
        self._looked: dict[str, tuple[float, Stamp | None]] = {}

    def renewed(self, path: str) -> bool:
        """Look at a file if the last look was more than a second ago. Return whether it has changed since.

        A missing file has not changed: its directory may be about to be replaced.

        Args:
            path: the path of a client certificate.
        """
        now = time.monotonic()
        last, former = self._looked.get(path, (0.0, None))
        if former is not None and now - last < _PERIOD:
            return False
        current = stamp(path) or former
        self._looked[path] = now, current
        if former is None or current == former:
            return False
        self.count += 1
        return True
