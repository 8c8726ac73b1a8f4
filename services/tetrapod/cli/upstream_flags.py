"""kube-apiserver's flags that have no meaning here (yet): accepted, so that a command line written for it works, and named once.

True: the flag takes a value; False: a switch (a value may follow after `=`).
"""

from __future__ import annotations

from importlib.resources import files
from typing import Final

_SWITCHES: Final = frozenset(
    {
        "allow-privileged",
        "contention-profiling",
        "enable-garbage-collector",
        "enable-logs-handler",
        "service-account-extend-token-expiration",
        "service-account-lookup",
    }
)
ACCEPTED: Final[dict[str, bool]] = {
    name: name not in _SWITCHES for name in files(__package__).joinpath("upstream_flags.txt").read_text().split()
}
