"""A Kubernetes API server for tests: in this process, in memory, with a state that can be saved, restored and forked.

    from tetrapod.testing import Server

    with Server() as server:
        server.apply("crds/")
        state = server.snapshot()
        …
        server.reset(state)

`plugin.py` provides it as pytest fixtures; docs/how-to/testing.md documents both. Imports are deferred until first use:
pytest loads the plugin in every project, also where no test requests a server.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tetrapod.testing.client import ApiError, Client, Event
    from tetrapod.testing.server import Server, State

__all__ = ["ApiError", "Client", "Event", "Server", "State"]

_HOMES = {"ApiError": "client", "Client": "client", "Event": "client", "Server": "server", "State": "server"}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
