"""The flags, in upstream's groups, and how their values become `Options` (upstream: cmd/kube-apiserver/app/options)."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Collection, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, Final, NamedTuple

import click
from click.core import ParameterSource

from tetrapod.apps.options import Options
from tetrapod.cli.upstream_flags import ACCEPTED, SWITCHES, complaint
from tetrapod.generic.controllers import UnknownControllerError, canonical
from tetrapod.machinery.golang.durations import parse_duration


class Duration(click.ParamType[float]):
    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, int | float):
            return float(value)
        try:
            return parse_duration(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


class IP(click.ParamType[str]):
    name = "ip"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        try:
            found = ipaddress.ip_address(value) if value else None
            return str(found) if found is not None and not found.is_unspecified else ""  # which upstream takes for none
        except ValueError:
            self.fail(f'failed to parse IP: "{value}"', param, ctx)


class Flag(NamedTuple):
    group: str
    name: str
    help: str
    type: Any = str  # str, int, bool, Path, Duration(), "list": comma-separated, may be repeated, or "repeated"
    services: str = "acexu"  # which may take it: aggregator, core, extensions, auth (x), up


_SERVING, _ETCD, _AUTHN, _AUTHZ = "Secure serving flags", "Etcd flags", "Authentication flags", "Authorization flags"
_ELECTION = "Leader election flags"
_ADMISSION, _GENERIC, _MISC, _OURS = "Admission flags", "Generic flags", "Misc flags", "Tetrapod flags"
_AUDIT = "Auditing flags"

FLAGS: Final[Sequence[Flag]] = (
    Flag(_GENERIC, "request-timeout", "How long a request may take that is not long-running.", Duration()),
    Flag(_GENERIC, "max-requests-inflight", "Reading requests in work at once; 0 is no limit.", int),
    Flag(_GENERIC, "max-mutating-requests-inflight", "Mutating requests in work at once; 0 is no limit.", int),
    Flag(_GENERIC, "enable-priority-and-fairness", "Queue requests by FlowSchemas instead of counting them.", bool, services="au"),
    Flag(_GENERIC, "cors-allowed-origins", "Origins allowed for CORS, as regular expressions.", "list"),
    Flag(_GENERIC, "strict-transport-security-directives", "Directives of the HSTS header; empty leaves it out.", "list"),
    Flag(_GENERIC, "shutdown-delay-duration", "Time between not ready and refusing connections, at the end.", Duration()),
    Flag(_ETCD, "etcd-servers", "etcd's URLs; without any, `up` keeps everything in SQLite under the data directory.", "list"),
    Flag(_ETCD, "etcd-cafile", "The CA that signed etcd's certificate."),
    Flag(_ETCD, "etcd-certfile", "The client certificate for etcd."),
    Flag(_ETCD, "etcd-keyfile", "The key of the client certificate for etcd."),
    Flag(_ETCD, "etcd-prefix", "What every key in etcd begins with."),
    Flag(_ETCD, "etcd-compaction-interval", "Time between compactions of the store; 0 leaves those of etcd to others.", Duration()),
    Flag(_ETCD, "etcd-healthcheck-timeout", "How long the store may take to answer the check `etcd`.", Duration()),
    Flag(_ETCD, "etcd-readycheck-timeout", "How long the store may take to answer the check `etcd-readiness`.", Duration()),
    Flag(_ETCD, "encryption-provider-config", "A file that says what is encrypted in the store, and how."),
    Flag(_ETCD, "encryption-provider-config-automatic-reload", "Take changes of that file up without a restart.", bool),
    Flag(_SERVING, "bind-address", "The address to listen on."),
    Flag(
        _SERVING,
        "advertise-address",
        "Where others reach this server; by default the address of the interface that leads outside.",
        IP(),
        services="acu",
    ),
    Flag(_GENERIC, "external-hostname", "Host, or host:port, of this server in documents: the OpenID discovery document.", services="xu"),
    Flag(_SERVING, "secure-port", "The port to serve HTTPS on.", int),
    Flag(_SERVING, "cert-dir", "Where apiserver.crt and apiserver.key lie, if no files are named.", services="u"),
    Flag(_SERVING, "tls-cert-file", "The serving certificate; without one, one is made."),
    Flag(_SERVING, "tls-private-key-file", "The key of the serving certificate."),
    Flag(_SERVING, "tls-min-version", "The oldest TLS version: VersionTLS10, VersionTLS11, VersionTLS12 or VersionTLS13."),
    Flag(_SERVING, "tls-cipher-suites", "Cipher suites before TLS 1.3, by Go's names.", "list"),
    Flag(_SERVING, "tls-sni-cert-key", "cert,key[:name,name]: another certificate by server name; may be repeated.", "repeated"),
    Flag(_AUTHN, "anonymous-auth", "Whether requests without credentials are let in as system:anonymous.", bool),
    Flag(_AUTHN, "authentication-config", "A file that configures JWT authenticators and anonymous access."),
    Flag(_AUTHN, "authentication-token-webhook-config-file", "A kubeconfig that says who reviews tokens.", services="xu"),
    Flag(_AUTHN, "authentication-token-webhook-version", "The version of TokenReviews sent there: v1 or v1beta1.", services="xu"),
    Flag(_AUTHN, "authentication-token-webhook-cache-ttl", "How long its answers are kept.", Duration(), services="xu"),
    Flag(_AUTHN, "oidc-issuer-url", "The URL of the OpenID issuer whose ID tokens are accepted.", services="xu"),
    Flag(_AUTHN, "oidc-client-id", "The audience of its ID tokens.", services="xu"),
    Flag(_AUTHN, "oidc-ca-file", "The CA of the issuer's certificate; the system's CAs by default.", services="xu"),
    Flag(_AUTHN, "oidc-username-claim", "The claim that is the user's name.", services="xu"),
    Flag(_AUTHN, "oidc-username-prefix", "What the name begins with; '-' for nothing, else the issuer by default.", services="xu"),
    Flag(_AUTHN, "oidc-groups-claim", "The claim that is the user's groups.", services="xu"),
    Flag(_AUTHN, "oidc-groups-prefix", "What the groups' names begin with.", services="xu"),
    Flag(_AUTHN, "oidc-signing-algs", "Algorithms that ID tokens may be signed with.", "list", services="xu"),
    Flag(_AUTHN, "oidc-required-claim", "claim=value: what every ID token must say; may be repeated.", "repeated", services="xu"),
    Flag(_AUTHN, "client-ca-file", "CAs of client certificates."),
    Flag(_AUTHN, "token-auth-file", 'A file of static tokens: token,user,uid,"group1,group2".', services="xu"),
    Flag(_AUTHN, "enable-bootstrap-token-auth", "Accept bootstrap tokens (secrets of kube-system).", bool, services="xu"),
    Flag(_AUTHN, "api-audiences", "Audiences of service account tokens; the issuer by default.", "list"),
    Flag(_AUTHN, "service-account-issuer", "The issuer of service account tokens; further ones are accepted.", "list", services="xcu"),
    Flag(_AUTHN, "service-account-jwks-uri", "The JWKS address in the OIDC discovery document.", services="xu"),
    Flag(_AUTHN, "service-account-key-file", "Keys to verify service account tokens with; may be repeated.", "list", services="xu"),
    Flag(_AUTHN, "service-account-signing-key-file", "The key that signs service account tokens.", services="xu"),
    Flag(_AUTHN, "service-account-max-token-expiration", "How long a token may be good for; 0 is no limit.", Duration(), services="xu"),
    Flag(_AUTHN, "service-account-extend-token-expiration", "Let tokens in pods be good for longer than they say.", bool, services="xu"),
    Flag(_AUTHN, "requestheader-client-ca-file", "The CA of front proxies whose X-Remote-* headers are believed."),
    Flag(_AUTHN, "requestheader-allowed-names", "Common names of front proxies; empty allows all of that CA.", "list"),
    Flag(_AUTHN, "requestheader-username-headers", "Headers that carry the user's name.", "list"),
    Flag(_AUTHN, "requestheader-group-headers", "Headers that carry the user's groups.", "list"),
    Flag(_AUTHN, "requestheader-uid-headers", "Headers that carry the user's uid.", "list"),
    Flag(_AUTHN, "requestheader-extra-headers-prefix", "Prefixes of headers that carry more about the user.", "list"),
    Flag(_AUTHZ, "authorization-mode", "Authorizers in order: Node, RBAC, ABAC, Webhook, AlwaysAllow, AlwaysDeny.", "list", services="xu"),
    Flag(_AUTHZ, "authorization-config", "A file that configures the authorizers, instead of the other flags.", services="xu"),
    Flag(_AUTHZ, "authorization-policy-file", "The policies of ABAC, one in each line.", services="xu"),
    Flag(_AUTHZ, "authorization-webhook-config-file", "A kubeconfig that says who reviews access.", services="xu"),
    Flag(_AUTHZ, "authorization-webhook-version", "The version of SubjectAccessReviews sent there: v1 or v1beta1.", services="xu"),
    Flag(_AUTHZ, "authorization-webhook-cache-authorized-ttl", "How long it is kept that somebody may.", Duration(), services="xu"),
    Flag(_AUTHZ, "authorization-webhook-cache-unauthorized-ttl", "How long it is kept that he may not.", Duration(), services="xu"),
    Flag("Features flags", "profiling", "Serve profiles and log levels below /debug/pprof and /debug/flags.", bool),
    Flag("Traces flags", "tracing-config-file", "Which requests are traced, and the collector that is told (OTLP over gRPC)."),
    Flag(_AUDIT, "audit-policy-file", "The audit policy; without one nothing is audited.", services="au"),
    Flag(_AUDIT, "audit-log-path", "The audit log's file; '-' is standard output.", services="au"),
    Flag(_AUDIT, "audit-log-format", "json, or legacy: a line of text for each event.", services="au"),
    Flag(_AUDIT, "audit-log-maxage", "Days to keep old audit logs; 0 is for ever.", int, services="au"),
    Flag(_AUDIT, "audit-log-maxbackup", "Old audit logs to keep; 0 is all.", int, services="au"),
    Flag(_AUDIT, "audit-log-maxsize", "Megabytes from which on an audit log is moved aside; 0 is never.", int, services="au"),
    Flag(_AUDIT, "audit-log-compress", "Compress old audit logs with gzip.", bool, services="au"),
    Flag(_AUDIT, "audit-webhook-config-file", "A kubeconfig that says where events are sent to.", services="au"),
    Flag(_AUDIT, "audit-webhook-initial-backoff", "Time before the first further try.", Duration(), services="au"),
    Flag(_AUDIT, "audit-log-mode", "batch: requests do not wait; blocking: they do; blocking-strict: and fail with it.", services="au"),
    Flag(_AUDIT, "audit-log-batch-buffer-size", "Events that may wait.", int, services="au"),
    Flag(_AUDIT, "audit-log-batch-max-size", "Events of a batch at most.", int, services="au"),
    Flag(_AUDIT, "audit-log-batch-max-wait", "Time after which a batch goes that is not full.", Duration(), services="au"),
    Flag(_AUDIT, "audit-log-batch-throttle-enable", "Limit how many batches go.", bool, services="au"),
    Flag(_AUDIT, "audit-log-batch-throttle-qps", "Batches a second.", float, services="au"),
    Flag(_AUDIT, "audit-log-batch-throttle-burst", "Batches at once.", int, services="au"),
    Flag(_AUDIT, "audit-log-truncate-enabled", "Take objects out of large events.", bool, services="au"),
    Flag(_AUDIT, "audit-log-truncate-max-event-size", "Bytes of an event at most.", int, services="au"),
    Flag(_AUDIT, "audit-log-truncate-max-batch-size", "Bytes of a batch at most.", int, services="au"),
    Flag(_AUDIT, "audit-log-version", "The version that events are written in.", services="au"),
    Flag(_AUDIT, "audit-webhook-mode", "batch: requests do not wait; blocking: they do; blocking-strict: and fail with it.", services="au"),
    Flag(_AUDIT, "audit-webhook-batch-buffer-size", "Events that may wait.", int, services="au"),
    Flag(_AUDIT, "audit-webhook-batch-max-size", "Events of a batch at most.", int, services="au"),
    Flag(_AUDIT, "audit-webhook-batch-max-wait", "Time after which a batch goes that is not full.", Duration(), services="au"),
    Flag(_AUDIT, "audit-webhook-batch-throttle-enable", "Limit how many batches go.", bool, services="au"),
    Flag(_AUDIT, "audit-webhook-batch-throttle-qps", "Batches a second.", float, services="au"),
    Flag(_AUDIT, "audit-webhook-batch-throttle-burst", "Batches at once.", int, services="au"),
    Flag(_AUDIT, "audit-webhook-truncate-enabled", "Take objects out of large events.", bool, services="au"),
    Flag(_AUDIT, "audit-webhook-truncate-max-event-size", "Bytes of an event at most.", int, services="au"),
    Flag(_AUDIT, "audit-webhook-truncate-max-batch-size", "Bytes of a batch at most.", int, services="au"),
    Flag(_AUDIT, "audit-webhook-version", "The version that events are written in.", services="au"),
    Flag(_ADMISSION, "enable-admission-plugins", "Admission plugins to turn on beside the default ones.", "list"),
    Flag(_ADMISSION, "disable-admission-plugins", "Admission plugins to turn off.", "list"),
    Flag(_ADMISSION, "admission-control-config-file", "What admission plugins are configured with: an AdmissionConfiguration."),
    Flag(_ADMISSION, "default-not-ready-toleration-seconds", "How long pods stay on nodes that are not ready.", int, services="cu"),
    Flag(_ADMISSION, "default-unreachable-toleration-seconds", "How long pods stay on nodes out of reach.", int, services="cu"),
    Flag(_MISC, "service-cluster-ip-range", "The network of cluster IPs.", services="cu"),
    Flag(_MISC, "service-node-port-range", "The ports of NodePort services.", services="cu"),
    Flag(_MISC, "enable-aggregator-routing", "Send requests to endpoints' addresses rather than the cluster IP.", bool),
    Flag(_MISC, "aggregator-reject-forwarding-redirect", "Refuse redirects of other API servers; false passes them on.", bool),
    Flag(
        _MISC,
        "endpoint-reconciler-type",
        "How the service `kubernetes` knows its endpoints: by leases, by a count, or not at all.",
        click.Choice(["lease", "master-count", "none"]),
        services="au",
    ),
    Flag(_MISC, "apiserver-count", "How many servers there are (for master-count).", click.IntRange(min=1), services="au"),
    Flag(_MISC, "allow-privileged", "Let containers be privileged.", bool, services="cu"),
    Flag(_MISC, "event-ttl", "How long events are kept.", Duration(), services="cu"),
    Flag(_MISC, "kubelet-certificate-authority", "The CA of kubelets; without one any certificate of theirs is believed.", services="cu"),
    Flag(_MISC, "kubelet-client-certificate", "Our client certificate towards kubelets.", services="cu"),
    Flag(_MISC, "kubelet-client-key", "The key of that certificate.", services="cu"),
    Flag(_MISC, "kubelet-preferred-address-types", "Addresses of nodes to reach kubelets at, best first.", "list", services="cu"),
    Flag(_MISC, "kubelet-timeout", "Accepted as upstream does, which does not look at it either.", Duration(), services="cu"),
    Flag(_MISC, "proxy-client-cert-file", "The client certificate of the aggregator towards other API servers."),
    Flag(_MISC, "proxy-client-key-file", "The key of that certificate."),
    Flag(_ELECTION, "leader-elect", "Of replicas over one etcd let one run the controllers.", bool, services="cxu"),
    Flag(_ELECTION, "leader-elect-lease-duration", "After this long unrenewed a lease is for others to take.", Duration(), services="cxu"),
    Flag(_ELECTION, "leader-elect-renew-deadline", "After this long unrenewed a leader stops its controllers.", Duration(), services="cxu"),
    Flag(_ELECTION, "leader-elect-retry-period", "Time between tries to take or to renew the lease.", Duration(), services="cxu"),
    Flag(_ELECTION, "leader-elect-resource-lock", "What is locked: leases.", click.Choice(["leases"]), services="cxu"),
    Flag(_ELECTION, "leader-elect-resource-name", "What the leases' names begin with: NAME-core, NAME-auth.", services="cxu"),
    Flag(_ELECTION, "leader-elect-resource-namespace", "The leases' namespace.", services="cxu"),
    Flag(_OURS, "data-dir", "Where certificates, kubeconfig and the embedded database live.", Path),
    Flag(
        _OURS,
        "controllers",
        "Node-less controllers: '*' the default ones, 'foo' this one, '-foo' not this one, '-*' none.",
        "list",
        services="cxu",
    ),
    Flag(_OURS, "collection-delay", "Time before owners of a new kind of custom resource are watched.", Duration(), services="cu"),
    Flag(
        _OURS,
        "event-loop-warning-threshold",
        "CPU time from which on a step of the event loop is logged with its request; 0 logs none.",
        Duration(),
    ),
    Flag(_OURS, "fair-scheduling", "Share the event loop fairly between the users whose requests compete for it.", bool),
    Flag(_OURS, "break-glass", "Let system:masters pass webhooks and policies of admission, to repair them.", bool),
    Flag(_OURS, "redis-url", "A redis in which replicas share answers of token reviews and of webhooks (optional).", services="acex"),
    Flag(_OURS, "redis-password-file", "A file with redis' password; a new one is taken up.", services="acex"),
    Flag(_OURS, "aggregator-url", "Where the aggregator is (for controllers); may be given for each replica.", "list", services="cex"),
    Flag(_OURS, "core-url", "Where core is; may be given for each replica.", "list", services="a"),
    Flag(_OURS, "extensions-url", "Where extensions is; may be given for each replica.", "list", services="a"),
    Flag(_OURS, "auth-url", "Where auth is; may be given for each replica.", "list", services="ace"),
    Flag("Logs flags", "logging-format", "text or json.", click.Choice(["text", "json"])),
)

_DEFAULTS: Final = {f.name: getattr(Options(), f.name) for f in fields(Options)}


_RENAMED: Final = ("--audit-webhook-batch-initial-backoff", "--audit-webhook-initial-backoff")
"""An old name, which upstream still knows."""


def _key(flag: str) -> str:
    return flag.replace("-", "_")


class FlagCommand(click.Command):
    """Prints its options in upstream's groups, and accepts upstream's other flags."""

    def __init__(self, *args: Any, service: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.flags = [flag for flag in FLAGS if service in flag.services]
        self.params.extend(_option(flag) for flag in self.flags)
        self.params.append(click.Option(["-v", "--v", "verbosity"], type=int, default=1, help="Log verbosity, as klog's."))

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        args = [f"-{arg}" if arg.startswith("-v=") else arg.replace(*_RENAMED) for arg in args]  # as pflag reads it
        known, ignored = split_ignored(args, {flag.name for flag in self.flags})
        ctx.meta["tetrapod.ignored"] = ignored
        return super().parse_args(ctx, known)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        groups: dict[str, list[tuple[str, str]]] = {}
        by_name = {flag.name: flag.group for flag in self.flags}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record is not None:
                groups.setdefault(by_name.get((param.name or "").replace("_", "-"), "Global flags"), []).append(record)
        for title, records in groups.items():
            with formatter.section(title):
                formatter.write_dl(records)


def _option(flag: Flag) -> click.Option:
    default = _DEFAULTS[_key(flag.name)]
    if flag.type in ("list", "repeated"):
        shown = ",".join(default)
        return click.Option([f"--{flag.name}"], multiple=True, help=flag.help, show_default=shown or False)
    if flag.type is bool:
        return click.Option(
            [f"--{flag.name}"], type=bool, is_flag=False, flag_value="true", default=default, help=flag.help, show_default=True
        )
    kind = click.Path(path_type=Path) if flag.type is Path else flag.type
    return click.Option([f"--{flag.name}"], type=kind, default=default, help=flag.help, show_default=default not in ("", 0))


def split_ignored(args: Sequence[str], own: Collection[str] = ()) -> tuple[list[str], list[str]]:
    """Take upstream's flags that mean nothing to a command (are not its `own`) out of its line; returns the rest and their names.

    Raises click.UsageError: one would make it another server.
    """
    known: list[str] = []
    ignored: list[str] = []
    rest = iter(args)
    for arg in rest:
        name, equals, value = arg.removeprefix("--").partition("=")
        if not arg.startswith("--") or name not in ACCEPTED or name in own:
            known.append(arg)
            continue
        ignored.append(name)
        if not equals:
            value = "true" if name in SWITCHES else next(rest, "")
        if text := complaint(name, value):
            raise click.UsageError(text)
    return known, ignored


def to_options(ctx: click.Context, values: dict[str, Any]) -> Options:
    """Options from parsed flags; lists are joined over repetitions and commas."""
    kinds = {_key(flag.name): flag.type for flag in FLAGS}
    given: dict[str, Any] = {}
    for key, value in values.items():
        if kinds.get(key) == "list":
            if value:
                given[key] = tuple(part for item in value for part in item.split(",") if part)
        elif kinds.get(key) == "repeated":
            given[key] = tuple(value)
        else:
            given[key] = value
    if "controllers" in given:
        try:
            given["controllers"] = canonical(given["controllers"])
        except UnknownControllerError as error:
            raise click.BadParameter(str(error), ctx, param_hint="--controllers") from None
    named = frozenset(key.replace("_", "-") for key in values if ctx.get_parameter_source(key) is ParameterSource.COMMANDLINE)
    return Options(**given, given=named, ignored=tuple(dict.fromkeys(ctx.meta.get("tetrapod.ignored", ()))))


def parsed(service: str, args: Sequence[str]) -> Options:
    """The options that a command line of a service means. Raises click.UsageError."""
    with with_flags(service, name="flags")(lambda options: None).make_context("flags", list(args)) as context:
        return to_options(context, context.params)


def with_flags(service: str, **attrs: Any) -> Callable[[Callable[..., None]], FlagCommand]:
    """A command that takes the flags of a service and is called with `Options`."""

    def decorate(run: Callable[[Options], None]) -> FlagCommand:
        def callback(**values: Any) -> None:
            run(to_options(click.get_current_context(), values))

        return FlagCommand(callback=callback, service=service, help=run.__doc__, **attrs)

    return decorate
