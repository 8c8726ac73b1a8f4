"""Whether this process competes with others for the controllers, as `--leader-elect` and the store say."""

from __future__ import annotations

import click

from tetrapod.apps.options.options import Options
from tetrapod.generic.client.interface import Client
from tetrapod.generic.client.leaderelection.leadership import ALONE, Leadership


def leadership(options: Options, service: str, client: Client) -> Leadership:
    """SQLite has one process: no lease is made, or waited for. Raises UsageError.

    The names are our own: a kube-controller-manager of upstream's may run beside, with a lease of its own.
    """
    if not options.leader_election.leader_elect or not options.etcd.servers:
        return ALONE
    from tetrapod.generic.client.leaderelection.config import ElectionConfig
    from tetrapod.generic.client.leaderelection.elector import Elector
    from tetrapod.generic.client.leaderelection.lock import LeaseLock

    try:
        config = ElectionConfig(
            f"{options.leader_election.resource_name}-{service}",
            options.leader_election.resource_namespace,
            options.leader_election.lease_duration,
            options.leader_election.renew_deadline,
            options.leader_election.retry_period,
        )
    except ValueError as error:
        raise click.UsageError(f"--leader-elect-*: {error}") from None
    return Elector(LeaseLock(client, config.namespace, config.name), config)
