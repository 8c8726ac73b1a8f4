"""Which requests may take as long as they like (upstream: BasicLongRunningRequestCheck with kube-apiserver's arguments)."""

from __future__ import annotations

from typing import Final

from tetrapod.machinery.requestinfo import RequestInfo

_VERBS: Final = frozenset({"watch", "proxy"})
_SUBRESOURCES: Final = frozenset({"attach", "exec", "proxy", "log", "portforward"})


def is_long_running(info: RequestInfo | None) -> bool:
    if info is None:
        return False
    if info.is_resource_request:
        return info.verb in _VERBS or info.subresource in _SUBRESOURCES
    return info.path.startswith("/debug/pprof/")
