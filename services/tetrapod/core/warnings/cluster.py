"""Warnings about nodes, secrets, service accounts and quotas.

Upstream: pkg/api/{node,secret,serviceaccount}, pkg/registry/core/resourcequota.
"""

from __future__ import annotations

import base64

from tetrapod.core.admission.service_account import ENFORCE
from tetrapod.core.podspec.pod_resources import amounts
from tetrapod.machinery.addresses import cidr_warnings
from tetrapod.machinery.gvk import Object


def node_warnings(node: Object, old: Object | None) -> list[str]:
    """Return warnings about deprecated fields and non-canonical CIDRs."""
    spec = node.get("spec") or {}
    out = ["spec.externalID: this field is deprecated, and is unused by Kubernetes"] if spec.get("externalID") else []
    for i, cidr in enumerate(spec.get("podCIDRs") or ()):
        out += cidr_warnings(f"spec.podCIDRs[{i}]", cidr)
    return out


def service_account_warnings(account: Object, old: Object | None) -> list[str]:
    """Return a warning if the deprecated annotation is added."""
    if ENFORCE not in (account["metadata"].get("annotations") or {}) or (old and ENFORCE in (old["metadata"].get("annotations") or {})):
        return []
    return [f"metadata.annotations[{ENFORCE}]: deprecated in v1.32+; prefer separate namespaces to isolate access to mounted secrets"]


def quota_warnings(quota: Object, old: Object | None) -> list[str]:
    """Return warnings about request quotas that are larger than the limit quotas."""
    if old is not None:
        return []
    hard = amounts((quota.get("spec") or {}).get("hard"))
    out = []
    for name in ("cpu", "memory", "ephemeral-storage"):
        request, limit = hard.get(f"requests.{name}", hard.get(name)), hard.get(f"limits.{name}")
        if request is not None and limit is not None and request > limit:
            quota_name = f"requests.{name}" if f"requests.{name}" in hard else name
            out.append(f"ResourceQuota {quota_name} ({request}) should be less than limits.{name} ({limit})")
    return out


def secret_warnings(secret: Object, old: Object | None) -> list[str]:
    """Return a warning if the certificate and key of a TLS Secret do not match."""
    if secret.get("type") != "kubernetes.io/tls":
        return []
    from tetrapod.core.warnings import key_pairs  # imported for the first TLS Secret

    data = secret.get("data") or {}
    error = key_pairs.fault(base64.b64decode(data.get("tls.crt") or ""), base64.b64decode(data.get("tls.key") or ""))
    return [error] if error else []
