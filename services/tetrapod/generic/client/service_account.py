"""The directory in which a container finds the credentials of its pod's service account.

Upstream: plugin/pkg/admission/serviceaccount/admission.go, DefaultAPITokenMountPath
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

MOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""It contains the files `token`, `ca.crt` and `namespace`."""
