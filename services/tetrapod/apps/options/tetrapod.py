"""The flags that kube-apiserver does not have: leader election, peers, Redis and others."""

from __future__ import annotations

from dataclasses import dataclass

from tetrapod.apps.options.flag import CORE, flag


@dataclass(frozen=True, slots=True)
class LeaderElectionFlags:
    """The flags of leader election, with the names and words of kube-controller-manager.

    Upstream: staging/src/k8s.io/component-base/config/options/leaderelectionconfig.go.
    """

    leader_elect: bool = flag(
        "leader-elect",
        True,
        "Start a leader election client and gain leadership before running controllers. It has an effect over etcd.",
    )
    lease_duration: float = flag(
        "leader-elect-lease-duration",
        15.0,
        "The duration that non-leader candidates will wait after observing a leadership renewal until attempting to "
        "acquire leadership of a led but unrenewed leader slot.",
    )
    renew_deadline: float = flag(
        "leader-elect-renew-deadline",
        10.0,
        "The interval between attempts by the acting master to renew a leadership slot before it stops leading.",
    )
    retry_period: float = flag(
        "leader-elect-retry-period",
        2.0,
        "The duration the clients should wait between attempting acquisition and renewal of a leadership.",
    )
    resource_lock: str = flag(
        "leader-elect-resource-lock",
        "leases",
        "The type of resource object that is used for locking during leader election.",
        choices=("leases",),
    )
    resource_name: str = flag(
        "leader-elect-resource-name",
        "tetrapod",
        "The prefix of the names of the resource objects that are used for locking during leader election: NAME-core, "
        "NAME-auth.",
    )
    resource_namespace: str = flag(
        "leader-elect-resource-namespace",
        "kube-system",
        "The namespace of the resource objects that are used for locking during leader election.",
    )


@dataclass(frozen=True, slots=True)
class TetrapodFlags:
    """The flags of behaviour that only Tetrapod has."""

    workers: int = flag(
        "workers",
        1,
        "The number of processes that serve the port, to use several cores. Each has its own watch cache. More "
        "than one need --etcd-servers. The limits of requests in flight are divided among them.",
        minimum=1,
    )
    controllers: tuple[str, ...] = flag(
        "controllers",
        ("*",),
        "A list of controllers to enable. '*' enables all on-by-default controllers, 'foo' enables the controller "
        "named 'foo', '-foo' disables it, '-*' disables all.",
        programs=frozenset({"core", "auth", "up"}),
    )
    collection_delay: float = flag(
        "collection-delay",
        4.0,
        "How long the garbage collector waits before it watches the objects of a new kind of custom resource.",
        programs=CORE,
    )
    event_loop_warning_threshold: float = flag(
        "event-loop-warning-threshold",
        0.1,
        "Log each step of the event loop that takes this much CPU time, with its request. 0 disables the log.",
    )
    fair_scheduling: bool = flag(
        "fair-scheduling", True, "Share the event loop fairly between the users whose requests compete for it."
    )
    break_glass: bool = flag(
        "break-glass",
        False,
        "Exempt requests of the group system:masters from admission webhooks and policies, to repair these.",
    )


@dataclass(frozen=True, slots=True)
class RedisFlags:
    """The flags of the Redis cache that the replicas of a service share."""

    url: str = flag(
        "redis-url",
        "",
        "The URL of a Redis in which replicas share responses of token reviews and of webhooks (optional).",
    )
    password_file: str = flag(
        "redis-password-file", "", "File with the password of Redis. It is reloaded if it changes."
    )


@dataclass(frozen=True, slots=True)
class PeerFlags:
    """The flags with the URLs of the peer services, for aggregator, core, extensions and auth as separate processes."""

    aggregator_url: tuple[str, ...] = flag(
        "aggregator-url",
        (),
        "List of URLs of the aggregator's replicas, comma separated, or unix:///PATH for its --unix-socket. "
        "Controllers send their requests there.",
        programs=frozenset({"core", "extensions", "auth"}),
    )
    core_url: tuple[str, ...] = flag(
        "core-url",
        (),
        "List of URLs of core's replicas, comma separated, or unix:///PATH for its --unix-socket.",
        programs=frozenset({"aggregator"}),
    )
    extensions_url: tuple[str, ...] = flag(
        "extensions-url",
        (),
        "List of URLs of extensions' replicas, comma separated, or unix:///PATH for its --unix-socket.",
        programs=frozenset({"aggregator"}),
    )
    auth_url: tuple[str, ...] = flag(
        "auth-url",
        (),
        "List of URLs of auth's replicas, comma separated, or unix:///PATH for its --unix-socket.",
        programs=frozenset({"aggregator", "core", "extensions"}),
    )
