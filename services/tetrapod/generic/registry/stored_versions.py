"""The version in which the objects of a built-in kind are stored.

A server of the release before must be able to read them, so that an upgrade can be undone.
Upstream: k8s.io/apiserver/pkg/server/storage/resource_encoding_config.go, emulatedStorageVersion; and
pkg/endpoints/discovery/storageversionhash.go.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence

from tetrapod.generic.configuration.effective_version import EffectiveVersion, Release
from tetrapod.machinery.gvk import GroupVersion
from tetrapod.machinery.types.lifecycles import lifecycle


def stored_version(group: str, kind: str, versions: Sequence[str], release: EffectiveVersion) -> str:
    """Return the version in which a kind is stored.

    It is the best one that the oldest permitted peer knows (`release.min_compatibility`). An alpha version is only
    stored if that release knows no other; then it is the best one of the emulated release.

    Args:
        group: the API group.
        kind: the kind.
        versions: the versions of the kind, the best one first.
        release: the effective version of the server.
    """

    def is_known(version: str, at: Release) -> bool:
        introduced = lifecycle(str(GroupVersion(group, version)), kind).introduced
        return introduced is None or introduced <= at

    stable = (v for v in versions if "alpha" not in v and is_known(v, release.min_compatibility))
    present = (v for v in versions if is_known(v, release.emulated))
    return next(stable, next(present, versions[0]))


def storage_version_hash(group: str, version: str, kind: str) -> str:
    """Return the storageVersionHash of discovery for a kind that is stored in this version."""
    return base64.b64encode(hashlib.sha256(f"{group}/{version}/{kind}".encode()).digest()[:8]).decode()
