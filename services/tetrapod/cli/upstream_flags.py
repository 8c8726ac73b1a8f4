"""The flags of kube-apiserver that have no effect here (docs/reference/flags.md).

Most are accepted, so that a command line written for kube-apiserver works, and logged once. A flag is rejected if
ignoring it would silently give the user another server than requested, unless its value describes the present
behaviour.
"""

from __future__ import annotations

from importlib.resources import files
from typing import Final, NamedTuple


class Rejected(NamedTuple):
    """A flag of kube-apiserver that is rejected unless it has one of a few values.

    Attributes:
        accepted_values: values that describe the present behaviour.
        alternative: the end of the error text, which says what to do instead.
    """

    accepted_values: tuple[str, ...]
    alternative: str


SWITCHES: Final = frozenset(
    {
        "contention-profiling",
        "enable-garbage-collector",
        "enable-logs-handler",
        "log-json-split-stream",
        "log-text-split-stream",
        "permit-address-sharing",
        "service-account-lookup",
    }
)
"""Boolean flags: their value, if any, follows `=`."""
REJECTED: Final[dict[str, Rejected]] = {
    "admission-control": Rejected((), "name plugins by --enable-admission-plugins and --disable-admission-plugins"),
    "enable-garbage-collector": Rejected(
        ("true",), "what objects own is always collected; --controllers says who does it"
    ),
    "storage-backend": Rejected(("", "etcd3"), "objects are in etcd, or in SQLite without --etcd-servers"),
}
ACCEPTED: Final = frozenset(files(__package__).joinpath("upstream_flags.txt").read_text("utf-8").split())
"""All flags of kube-apiserver without effect, the rejected ones included."""


def rejection(name: str, value: str) -> str:
    """Return the error text if a flag of kube-apiserver is rejected with this value, or "" if it is accepted."""
    rejected = REJECTED.get(name)
    if rejected is None or value in rejected.accepted_values:
        return ""
    return f"--{name} is not supported by Tetrapod: {rejected.alternative}"
