"""The preparation of a process in which a command runs a server."""

from __future__ import annotations

import logging

from tetrapod.apps.options.options import Options

log = logging.getLogger("tetrapod")


def prepare(options: Options) -> None:
    """Configure the log, delay garbage collection until the server is ready, and log the flags.

    A warning lists the flags of kube-apiserver that are ignored.
    """
    from tetrapod.apps.process import delay_garbage_collection, log_flags
    from tetrapod.generic.observability.logs import configure

    delay_garbage_collection()
    configure(options.logging.format, options.verbosity)
    log_flags(options.flags())
    if options.ignored:
        log.warning("ignoring flags that have no effect here: %s", ", ".join(f"--{name}" for name in options.ignored))
