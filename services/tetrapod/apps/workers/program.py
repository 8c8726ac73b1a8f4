"""Runs a program in this process, or in several workers (--workers)."""

from __future__ import annotations

import socket
import sys
from collections.abc import Callable
from dataclasses import replace

import click

from tetrapod.apps.options.options import Options
from tetrapod.apps.process import Server, run
from tetrapod.generic.http.listening import bind
from tetrapod.generic.http.unix_sockets import is_supported


def run_program(options: Options, make: Callable[[Options], Server]) -> int:
    """Run a server until a signal arrives, and return the exit code.

    Args:
        options: the options.
        make: creates the server; called in the event loop of each process.

    Raises:
        click.UsageError: this system or the store does not support a flag.
    """
    if problem := unsupported(options):
        raise click.UsageError(problem)
    if options.serving.secure_port == 0:
        try:
            options = with_free_port(options)
        except OSError as error:
            print(f"Error: {error}", file=sys.stderr)
            return 1
    if options.tetrapod.workers == 1:
        return run(lambda: make(options))
    if not options.etcd.servers:
        raise click.UsageError(
            f"--workers={options.tetrapod.workers} needs --etcd-servers: only one process can use the SQLite database"
        )
    from tetrapod.apps.workers.supervisor import supervise

    return supervise(options, make)


def unsupported(options: Options) -> str:
    """Return why this system does not support a flag, or "" if it supports all.

    Workers are forked and pass connections over sockets that only Linux has. On a Unix socket the server asks the
    kernel for the user of its peer, in Linux's way.
    """
    serving, tetrapod = options.serving, options.tetrapod
    if tetrapod.workers > 1 and not sys.platform.startswith("linux"):
        return f"--workers={tetrapod.workers} needs Linux"
    if serving.permit_port_sharing and not hasattr(socket, "SO_REUSEPORT"):
        return "--permit-port-sharing: this system has no SO_REUSEPORT"
    if serving.unix_socket and not is_supported():
        return f"--unix-socket={serving.unix_socket} needs Linux"
    return ""


def with_free_port(options: Options) -> Options:
    """Return the options with a port that the kernel has chosen, and with the socket that is bound to it.

    Raises:
        OSError: the address is not available. The text is Go's.
    """
    serving = options.serving
    listener = bind(serving.bind_address, 0, share_port=serving.permit_port_sharing)
    return replace(options, serving=replace(serving, secure_port=listener.getsockname()[1]), listener=listener)
