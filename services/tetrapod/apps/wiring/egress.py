"""The egress selector, as --egress-selector-config-file configures it."""

from __future__ import annotations

from tetrapod.apps.options.options import Options
from tetrapod.generic.egress.selector import NO_EGRESS, EgressSelector, read_egress_selector


def egress_selector(options: Options) -> EgressSelector:
    """Return the egress selector; without --egress-selector-config-file, all connections are direct.

    Raises:
        ValueError: the file is invalid; the text is upstream's.
    """
    path = options.egress.config_file
    return read_egress_selector(path) if path else NO_EGRESS
