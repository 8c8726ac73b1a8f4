"""API priority and fairness in the process that users connect to.

The concurrency limit is the sum of the two --max-*-inflight flags. Each of several workers has its share.
"""

from __future__ import annotations

from tetrapod.apps.options.options import Options
from tetrapod.generic.client.interface import Client
from tetrapod.generic.flowcontrol import dump
from tetrapod.generic.flowcontrol.controller import FlowControl
from tetrapod.generic.flowcontrol.work_estimator import Stats
from tetrapod.generic.lifecycle import Lifecycle
from tetrapod.generic.scheduling.config import FairScheduling
from tetrapod.generic.server.routes import Routes


def build_flow_control(
    options: Options,
    routes: Routes,
    client: Client,
    lifecycle: Lifecycle,
    statistics: Stats | None = None,
    *,
    forwards: bool = False,
) -> FlowControl | None:
    """Return flow control, or None if it is disabled or nothing is limited.

    Its hooks and its debug endpoints are registered.

    Args:
        options: the options.
        routes: the routes that get the debug endpoints.
        client: watches the configuration.
        lifecycle: runs the hooks.
        statistics: returns the number and average size of a resource's objects, to estimate the work of a list; None if
            these are unknown.
        forwards: whether requests are forwarded to other processes on the same CPUs. While several flows are active,
            all requests in flight of one flow are then limited; if False, a get, list or watch is not.
    """
    limit = options.generic.max_requests_inflight + options.generic.max_mutating_requests_inflight
    if not options.generic.enable_priority_and_fairness or limit <= 0:
        return None
    scheduling = FairScheduling(enabled=options.tetrapod.fair_scheduling)
    control = FlowControl(options.share(limit), statistics, forwards=forwards, scheduling=scheduling)
    control.follow(client, lifecycle)
    dump.install(routes, control)
    return control
