"""kube-apiserver's flags that have no effect here, by what there is to say of them (docs/reference/flags.md).

Most are accepted, so that a command line written for kube-apiserver works, and named once in the log: they are about how upstream works
inside, or about what is not built in. Where a server would be another one than was asked for, and nobody would see it, the flag is refused
instead, unless it says what is so anyway.
"""

from __future__ import annotations

from importlib.resources import files
from typing import Final, NamedTuple


class Refused(NamedTuple):
    """`fine` are the values that change nothing; `instead` is what to do about others."""

    fine: tuple[str, ...]
    instead: str


SWITCHES: Final = frozenset(
    {
        "contention-profiling",
        "disable-http2-serving",
        "emulation-forward-compatible",
        "enable-garbage-collector",
        "enable-logs-handler",
        "log-json-split-stream",
        "log-text-split-stream",
        "permit-address-sharing",
        "permit-port-sharing",
        "runtime-config-emulation-forward-compatible",
        "service-account-lookup",
        "shutdown-send-retry-after",
        "watch-cache",
    }
)
"""Flags without a value, or with one after `=`."""
REFUSED: Final[dict[str, Refused]] = {
    "admission-control": Refused((), "name plugins by --enable-admission-plugins and --disable-admission-plugins"),
    "egress-selector-config-file": Refused(("",), "connections are made directly"),
    "emulated-version": Refused(("", "1.37", "kube=1.37"), "v1.37 is the only version that is served"),
    "enable-garbage-collector": Refused(("true",), "what objects own is always collected; --controllers says who does it"),
    "etcd-servers-overrides": Refused(("",), "all resources are in one store"),
    "kubernetes-service-node-port": Refused(("0",), "make a Service of type NodePort beside `kubernetes`"),
    "service-account-signing-endpoint": Refused(("",), "tokens are signed by --service-account-signing-key-file"),
    "storage-backend": Refused(("", "etcd3"), "objects are in etcd, or in SQLite without --etcd-servers"),
}
ACCEPTED: Final = frozenset(files(__package__).joinpath("upstream_flags.txt").read_text().split())
"""All of them, the refused ones among them."""
_PATTERNS: Final = {"api/all": "", "api/ga": "", "api/beta": "beta", "api/alpha": "alpha"}


def complaint(name: str, value: str) -> str:
    """Why a flag is not accepted with this value; "" where it is."""
    if name == "runtime-config":
        return next(filter(None, map(_about_api, filter(None, value.split(",")))), "")
    refused = REFUSED.get(name)
    if refused is None or value in refused.fine:
        return ""
    return f"--{name} is not supported by Tetrapod: {refused.instead}"


def _about_api(setting: str) -> str:
    """Of an entry of --runtime-config: APIs are neither turned off nor added."""
    from tetrapod.machinery.types import groups

    api, _, value = setting.partition("=")
    served = {f"{group.name}/{version}".removeprefix("/") for group in groups() for version in group.versions}
    if value in ("", "true"):
        known = api in served or api in _PATTERNS
        return "" if known else f"--runtime-config: {api} is not served by Tetrapod"
    stage = _PATTERNS.get(api)
    affected = {name for name in served if stage in name.rpartition("/")[2]} if stage is not None else served & {api}
    return f"--runtime-config: {api} cannot be turned off in Tetrapod" if affected else ""
