"""Leader election of controllers, as the flags configure it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from tetrapod.apps.options.kubernetes import CoordinationFlags
from tetrapod.apps.options.options import Options
from tetrapod.generic.client.interface import Client
from tetrapod.generic.client.leaderelection.leadership import ALONE, Leadership

if TYPE_CHECKING:
    from tetrapod.generic.client.leaderelection.elector import ElectionConfig


def coordination_timing(flags: CoordinationFlags) -> ElectionConfig:
    """Return the Lease and the timing of the controller of coordinated leader elections.

    Upstream: pkg/controlplane/apiserver/options/validation.go, validateCoordinatedLeadershipFlags

    Raises:
        click.UsageError: the flags contradict each other.
    """
    from tetrapod.generic.client.leaderelection.elector import ElectionConfig

    prefix, errors = "--coordinated-leadership-", []
    if flags.lease_duration <= flags.renew_deadline:
        errors.append(f"{prefix}lease-duration must be greater than {prefix}renew-deadline")
    if flags.renew_deadline <= flags.retry_period:
        errors.append(f"{prefix}renew-deadline must be greater than {prefix}retry-period")
    if errors:
        raise click.UsageError("; ".join(errors))
    try:
        return ElectionConfig(
            name="leader-election-controller",
            lease_duration=flags.lease_duration,
            renew_deadline=flags.renew_deadline,
            retry_period=flags.retry_period,
        )
    except ValueError as error:
        raise click.UsageError(f"{prefix}*: {error}") from None


def build_leadership(options: Options, service: str, client: Client) -> Leadership:
    """Return the leader election of a service's controllers. Over SQLite there is one process, which always leads.

    The Leases have names of their own, so that an upstream kube-controller-manager can run with its own Lease. `client`
    writes the Lease.

    Raises:
        click.UsageError: the flags contradict each other.
    """
    flags = options.leader_election
    if not flags.leader_elect or not options.etcd.servers:
        return ALONE
    from tetrapod.generic.client.leaderelection.elector import ElectionConfig, Elector
    from tetrapod.generic.client.leaderelection.lock import LeaseLock

    try:
        config = ElectionConfig(
            name=f"{flags.resource_name}-{service}",
            namespace=flags.resource_namespace,
            lease_duration=flags.lease_duration,
            renew_deadline=flags.renew_deadline,
            retry_period=flags.retry_period,
        )
    except ValueError as error:
        raise click.UsageError(f"--leader-elect-*: {error}") from None
    return Elector(LeaseLock(client, config.namespace, config.name), config)
