"""`tetrapod proxy` beside an API server in a network namespace: traffic, lost rules, restarts, removal of rules."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from shutil import which
from typing import Any

import pytest
import yaml

from support import kube_apiserver
from support.https_client import MERGE, HttpsClient
from support.network_namespace import Namespace
from support.pages import ROOT, commands
from support.reader import Reader
from support.server import Server, command, environment, free_port, wait_ready
from support.stock import binaries
from support.waiting import until
from tetrapod.generic.certificates.kubeconfig import kubeconfig, write_kubeconfig

pytestmark = [
    pytest.mark.stock,  # its preparation installs iptables
    pytest.mark.timeout(300),
    pytest.mark.skipif(os.geteuid() != 0, reason="not applicable: only root can make network namespaces"),
]

NODE = "10.10.0.5"
SERVICES = "/api/v1/namespaces/default/services"
SLICES = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"


@dataclass
class Site:
    """The namespace, and what runs in it."""

    namespace: Namespace
    kubeconfig: Path
    client: HttpsClient
    directory: Path

    def call(self, method: str, path: str, body: Any = None, content_type: str = "application/json") -> Any:
        """Send a request to the API, check that it succeeds, and return the body of the answer."""
        reply = self.namespace.within(partial(self.client.call, method, path, body, content_type))
        assert reply.status in (200, 201), reply
        return reply.body

    def rules(self) -> str:
        """Return the rules of IPv4, without counters."""
        text = "".join(self.namespace.run("iptables-save", "-t", table) for table in ("nat", "filter", "mangle"))
        return "\n".join(line.split(" [")[0] for line in text.splitlines() if not line.startswith("#"))

    def until_rules(self, *parts: str) -> None:
        """Wait until the rules contain some texts."""
        until(self.rules, lambda text: all(part in text for part in parts), timeout=60, description="the rules")

    def expose(self, name: str, address: str, port: dict[str, Any], targets: list[int], **spec: Any) -> None:
        """Create a Service whose endpoints are ports of this node."""
        body = {"clusterIP": address, "ports": [port], **spec}
        self.call("POST", SERVICES, {"metadata": {"name": name}, "spec": body})
        for target in targets:
            self.call("POST", SLICES, endpoint_slice(name, f"{name}-{target}", port["protocol"], target))


def endpoint_slice(service: str, name: str, protocol: str, port: int) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "labels": {"kubernetes.io/service-name": service}},
        "addressType": "IPv4",
        "endpoints": [{"addresses": [NODE], "nodeName": "node1"}],
        "ports": [{"name": "", "protocol": protocol, "port": port}],
    }


@contextmanager
def node_namespace() -> Iterator[Namespace]:
    """Yield a namespace with the address of the node, in which all addresses have a route."""
    with Namespace() as namespace:
        namespace.ip(
            "link set lo up",
            "link add node type bridge",
            f"address add {NODE}/24 dev node",
            "link set node up",
            "route add default dev node",
        )
        yield namespace


def site_of(namespace: Namespace, client: HttpsClient, kubeconfig: Path, directory: Path) -> Site:
    """Return the site of a server that runs, after the Node is created."""
    site = Site(namespace, kubeconfig, client, directory)
    site.call("POST", "/api/v1/nodes", {"metadata": {"name": "node1"}})
    set_address(site, NODE)
    return site


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with node_namespace() as namespace:
        data, port = tmp_path / "data", free_port()
        log = tmp_path / "server.log"
        argv = command("up", f"--data-dir={data}", "--bind-address=127.0.0.1", f"--secure-port={port}")
        argv += ["--service-cluster-ip-range=10.96.0.0/16", "--controllers=-*"]
        process = namespace.start(argv, log, environment())
        server = Server(process, f"https://127.0.0.1:{port}", data, log)
        try:
            namespace.within(lambda: wait_ready(server.url, process, log))
            yield site_of(namespace, HttpsClient(server.kubeconfig), server.kubeconfig, tmp_path)
        finally:
            server.stop()


def set_address(site: Site, address: str, node: str = "node1") -> None:
    status = {"status": {"addresses": [{"type": "InternalIP", "address": address}]}}
    site.call("PATCH", f"/api/v1/nodes/{node}/status", status, MERGE)


@dataclass
class Proxy:
    process: subprocess.Popen[bytes]
    configuration: Path
    log: Path
    broken: Path
    """While this file exists, iptables-restore fails."""

    def ended(self) -> tuple[int, str]:
        """Wait until it ends, and return its exit code and the last line of its log."""
        return self.process.wait(60), self.log.read_text().splitlines()[-1]


@pytest.fixture
def proxy(site: Site) -> Iterator[Proxy]:
    file, log = site.directory / "proxy.json", site.directory / "proxy.log"
    content = {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "clientConnection": {"kubeconfig": str(site.kubeconfig)},
        "hostnameOverride": "node1",
        "mode": "iptables",
        "iptables": {"syncPeriod": "1s", "minSyncPeriod": "10ms"},
        "conntrack": {"maxPerCore": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"},
    }
    file.write_text(json.dumps(content))
    programs = site.directory / "programs"
    programs.mkdir()
    wrapper = programs / "iptables-restore"
    wrapper.write_text(f'#!/bin/sh\n[ ! -e {programs}/broken ] || exit 3\nexec {which("iptables-restore")} "$@"\n')
    wrapper.chmod(0o755)
    variables = {**environment(), "PATH": f"{programs}:{os.environ['PATH']}"}
    process = site.namespace.start(command("proxy", f"--config={file}", "-v=4"), log, variables)
    try:
        yield Proxy(process, file, log, programs / "broken")
    finally:
        process.terminate()
        process.wait(20)
    assert "Traceback" not in log.read_text()


def listen(site: Site, kind: socket.SocketKind, port: int) -> socket.socket:
    """Return a socket that listens at the node."""

    def make() -> socket.socket:
        made = socket.socket(socket.AF_INET, kind)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((NODE, port))
        if kind is socket.SOCK_STREAM:
            made.listen()
        made.settimeout(0.2)
        return made

    return site.namespace.within(make)


def connected(site: Site, kind: socket.SocketKind, address: str, port: int) -> socket.socket:
    """Return a socket that is connected to a Service."""

    def make() -> socket.socket:
        made = socket.socket(socket.AF_INET, kind)
        made.settimeout(5)
        try:
            made.connect((address, port))
        except OSError:
            made.close()
            raise
        return made

    return site.namespace.within(make)


def received(sockets: dict[str, socket.socket]) -> set[str]:
    """Return the names of the UDP sockets that have received something."""
    found = set()
    for name, one in sockets.items():
        try:
            one.recv(100)
            found.add(name)
        except TimeoutError:
            continue
    return found


def accepted_by(sockets: dict[str, socket.socket]) -> str:
    """Return the name of the TCP socket that has a connection to accept."""
    for name, one in sockets.items():
        try:
            one.accept()[0].close()
        except TimeoutError:
            continue
        return name
    raise AssertionError("no socket has a connection")


def test_a_client_of_a_sticky_service_keeps_its_endpoint(site: Site, proxy: Proxy) -> None:
    backends = {str(port): listen(site, socket.SOCK_STREAM, port) for port in (8001, 8002, 8003)}
    sticky = {"sessionAffinity": "ClientIP"}
    site.expose("web", "10.96.0.80", {"port": 80, "protocol": "TCP"}, [8001, 8002, 8003], **sticky)
    site.until_rules("default/web -> 10.10.0.5:8001", ":8002", ":8003")
    chosen = set()
    for _ in range(6):
        connected(site, socket.SOCK_STREAM, "10.96.0.80", 80).close()
        chosen.add(accepted_by(backends))
    assert len(chosen) == 1
    for backend in backends.values():
        backend.close()


def test_a_service_without_endpoints_rejects_connections(site: Site, proxy: Proxy) -> None:
    site.expose("empty", "10.96.0.81", {"port": 80, "protocol": "TCP"}, [])
    site.until_rules("default/empty has no endpoints")
    with pytest.raises(ConnectionRefusedError):
        connected(site, socket.SOCK_STREAM, "10.96.0.81", 80)


def test_a_udp_client_reaches_a_new_endpoint_after_its_own_has_gone(site: Site, proxy: Proxy) -> None:
    backends = {str(port): listen(site, socket.SOCK_DGRAM, port) for port in (5001, 5002)}
    site.expose("dns", "10.96.0.53", {"port": 53, "protocol": "UDP"}, [5001])
    site.until_rules("--to-destination 10.10.0.5:5001")
    client = connected(site, socket.SOCK_DGRAM, "10.96.0.53", 53)
    client.send(b"first")
    assert received(backends) == {"5001"}
    site.call("PUT", f"{SLICES}/dns-5001", endpoint_slice("dns", "dns-5001", "UDP", 5002))
    site.until_rules("--to-destination 10.10.0.5:5002")

    def send() -> set[str]:
        client.send(b"again")
        return received(backends)

    until(send, lambda names: names == {"5002"}, description="packets at the new endpoint")
    for one in (client, *backends.values()):
        one.close()


def test_rules_that_another_program_removes_come_back(site: Site, proxy: Proxy) -> None:
    site.expose("web", "10.96.0.80", {"port": 80, "protocol": "TCP"}, [8001])
    site.until_rules("10.10.0.5:8001", "KUBE-PROXY-CANARY")
    before = site.rules()
    for table in ("mangle", "nat", "filter"):
        for operation in ("-F", "-X"):
            site.namespace.run("iptables", "-w", "5", "-t", table, operation)
    until(site.rules, lambda text: sorted(text.splitlines()) == sorted(before.splitlines()), timeout=60)


def test_a_restarted_proxy_removes_rules_of_services_that_have_gone(site: Site, proxy: Proxy) -> None:
    site.expose("old", "10.96.0.80", {"port": 80, "protocol": "TCP"}, [8001])
    site.until_rules("default/old -> 10.10.0.5:8001")
    proxy.process.terminate()
    assert proxy.process.wait(20) == 0
    site.call("DELETE", f"{SERVICES}/old")
    site.expose("new", "10.96.0.81", {"port": 80, "protocol": "TCP"}, [8002])
    again = site.namespace.start(
        command("proxy", f"--config={proxy.configuration}"), site.directory / "again.log", environment()
    )
    site.until_rules("default/new -> 10.10.0.5:8002")
    assert "default/old" not in site.rules()
    again.terminate()
    again.wait(20)


def ask(site: Site, url: str) -> tuple[int, str]:
    """Return status and body of the answer of a server of the proxy."""

    def fetch() -> tuple[int, str]:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{url}", timeout=5) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    return site.namespace.within(fetch)


def until_health(site: Site, code: int) -> None:
    until(lambda: ask(site, "10256/livez")[0], lambda found: found == code, description=f"/livez with {code}")


def test_rules_that_could_not_be_written_are_written_later(site: Site, proxy: Proxy) -> None:
    site.expose("first", "10.96.0.80", {"port": 80, "protocol": "TCP"}, [8001])
    site.until_rules("default/first -> 10.10.0.5:8001")
    assert ask(site, "10256/healthz")[0] == 200
    proxy.broken.touch()
    site.expose("second", "10.96.0.81", {"port": 80, "protocol": "TCP"}, [8002])
    until_health(site, 503)
    assert "default/second" not in site.rules()
    assert "default/first -> 10.10.0.5:8001" in site.rules()
    proxy.broken.unlink()
    site.until_rules("default/first -> 10.10.0.5:8001", "default/second -> 10.10.0.5:8002")
    until_health(site, 200)
    _, failures = ask(site, "10249/metrics")
    for name in ("restore_failures_total", "partial_restore_failures_total"):
        metric = f'kubeproxy_sync_proxy_rules_iptables_{name}{{ip_family="IPv4"}} '
        assert [line for line in failures.splitlines() if line.startswith(metric)]


def test_cleanup_removes_all_rules_but_the_kubelets(site: Site, proxy: Proxy) -> None:
    site.namespace.run("iptables", "-w", "5", "-N", "OTHERS")
    site.expose("web", "10.96.0.80", {"port": 80, "protocol": "TCP"}, [8001])
    site.until_rules("10.10.0.5:8001", "KUBE-PROXY-CANARY")
    proxy.process.terminate()
    proxy.process.wait(20)
    done = site.namespace.within(
        lambda: subprocess.run(
            command("proxy", "--cleanup=true"), env=environment(), capture_output=True, text=True, check=False
        )
    )
    assert (done.returncode, done.stderr) == (0, "")
    left = [line for line in site.rules().splitlines() if "KUBE" in line or "OTHERS" in line]
    assert sorted(left) == sorted(
        [
            ":OTHERS -",
            ":KUBE-FIREWALL -",
            "-A INPUT -j KUBE-FIREWALL",
            "-A OUTPUT -j KUBE-FIREWALL",
            '-A KUBE-FIREWALL ! -s 127.0.0.0/8 -d 127.0.0.0/8 -m comment --comment "block incoming localnet '
            'connections" -m conntrack ! --ctstate RELATED,ESTABLISHED,DNAT -j DROP',
        ]
    )


def test_after_init_only_one_capability_suffices(site: Site) -> None:
    setting = "/proc/sys/net/ipv4/conf/all/route_localnet"
    before = site.namespace.run("cat", setting)
    arguments = [f"--kubeconfig={site.kubeconfig}", "--hostname-override=node1", "--conntrack-max-per-core=0"]
    arguments += ["--conntrack-tcp-timeout-established=100s"]
    log = site.directory / "init.log"
    process = site.namespace.start(command("proxy", *arguments, "--init-only"), log, environment())
    assert process.wait(60) == 0, log.read_text()
    assert (before, site.namespace.run("cat", setting)) == ("0\n", "1\n")
    established = "/proc/sys/net/netfilter/nf_conntrack_tcp_timeout_established"
    assert site.namespace.run("cat", established) == "100\n"
    assert "KUBE" not in site.rules()
    site.expose("web", "10.96.0.80", {"port": 80, "protocol": "TCP"}, [8001])
    limited = ["setpriv", "--bounding-set=-all,+net_admin", "--inh-caps=-all,+net_admin"]
    process = site.namespace.start([*limited, *command("proxy", *arguments)], log, environment())
    site.until_rules("default/web -> 10.10.0.5:8001")
    process.terminate()
    assert process.wait(20) == 0


@pytest.mark.parametrize(
    ("port", "text"),
    [
        (10249, "listen tcp 127.0.0.1:10249: bind: address already in use"),
        (
            10256,
            "healthz server failed: failed to start proxy healthz on 0.0.0.0:10256: listen tcp 0.0.0.0:10256: bind: "
            "address already in use",
        ),
    ],
)
def test_an_address_in_use_ends_the_proxy_if_that_is_configured(site: Site, port: int, text: str) -> None:
    other = site.namespace.within(lambda: socket.create_server(("127.0.0.1" if port == 10249 else "", port)))
    log = site.directory / "hard.log"
    arguments = [f"--kubeconfig={site.kubeconfig}", "--hostname-override=node1", "--conntrack-max-per-core=0"]
    process = site.namespace.start(command("proxy", *arguments, "--bind-address-hard-fail"), log, environment())
    assert process.wait(60) == 1
    assert log.read_text().splitlines()[-1] == f"Error: {text}"
    other.close()
    reason = "FailedToStartMetricServer" if port == 10249 else "FailedToStartProxierHealthcheck"
    assert notes(site)[reason] == text


def notes(site: Site) -> dict[str, str]:
    """Return the notes of the Events about the node by their reasons."""
    events = site.call("GET", "/apis/events.k8s.io/v1/namespaces/default/events")["items"]
    return {event["reason"]: event.get("note", "") for event in events if event["regarding"]["kind"] == "Node"}


def test_a_start_without_a_mode_is_reported(site: Site) -> None:
    log = site.directory / "default.log"
    arguments = [f"--kubeconfig={site.kubeconfig}", "--hostname-override=node1", "--conntrack-max-per-core=0"]
    process = site.namespace.start(command("proxy", *arguments), log, environment())
    found = until(lambda: notes(site), lambda reasons: "Starting" in reasons, description="the Event of the start")
    assert found["KubeProxyDefaultMode"].startswith("No kube-proxy mode specified: defaulting to 'iptables'.")
    process.terminate()
    assert process.wait(20) == 0


def test_the_proxy_says_why_it_cannot_start(site: Site) -> None:
    file = site.directory / "kubeconfig"
    file.write_text(site.kubeconfig.read_text().replace(site.client.url, f"https://127.0.0.1:{free_port()}"))
    log = site.directory / "unreachable.log"
    process = site.namespace.start(command("proxy", f"--kubeconfig={file}"), log, environment())
    until(log.read_text, lambda text: "Failed to list the node: https://127.0.0.1:" in text, description="the reason")
    process.terminate()
    assert process.wait(20) == 0


def test_the_proxy_ends_when_the_address_of_its_node_changes(site: Site, proxy: Proxy) -> None:
    site.until_rules("KUBE-SERVICES")
    set_address(site, "10.10.0.6")
    assert proxy.ended() == (1, 'Error: NodeIPs changed for the node "node1"')


def test_the_proxy_ends_when_its_configuration_changes(site: Site, proxy: Proxy) -> None:
    site.until_rules("KUBE-SERVICES")
    proxy.configuration.write_text(proxy.configuration.read_text() + "\n")
    assert proxy.ended() == (1, "Error: content of the proxy server's configuration file was updated")


def test_the_commands_of_the_guide(site: Site) -> None:
    """Execute them on a node with the name of this host. This namespace may not set nf_conntrack_max."""
    name = socket.gethostname().lower()
    site.call("POST", "/api/v1/nodes", {"metadata": {"name": name}})
    set_address(site, NODE, name)
    site.expose("web", "10.96.0.80", {"port": 80, "protocol": "TCP"}, [8001])
    credentials, start, write, cleanup, init = (
        text.replace("--cluster-cidr", "--conntrack-max-per-core=0 --cluster-cidr")
        for text in commands(ROOT / "docs/how-to/proxy.md", "## Start it")
    )
    reader = Reader(site.directory)
    reader.run(credentials.replace("https://192.0.2.1:6443", site.client.url))
    running = reader.executing(start)
    site.namespace.within(running.__enter__)
    try:
        site.until_rules("default/web -> 10.10.0.5:8001")
        assert '"healthy":true' in reader.log.read_text().replace(" ", "")
    finally:
        site.namespace.within(lambda: running.__exit__(None, None, None))
    reader.run(write)
    file = yaml.safe_load((reader.directory / "kube-proxy.yaml").read_text())
    assert (file["kind"], file["clientConnection"]["kubeconfig"]) == ("KubeProxyConfiguration", "kube-proxy.kubeconfig")
    assert "default/web -> 10.10.0.5:8001" in site.rules()
    site.namespace.within(lambda: reader.run(cleanup))
    assert "default/web" not in site.rules()
    site.namespace.within(lambda: reader.run(init))


def test_the_proxy_follows_a_kube_apiserver(tmp_path: Path) -> None:
    with node_namespace() as namespace:
        server = kube_apiserver.running(binaries()["kube-apiserver"], tmp_path)
        running = namespace.within(server.__enter__)
        try:
            file = tmp_path / "admin.kubeconfig"
            certificate, key = (path.read_bytes() for path in running.pki.admin)
            ca = running.ca.read_bytes()
            write_kubeconfig(file, kubeconfig(running.url, ca=ca, certificate=certificate, key=key, user="admin"))
            site = site_of(namespace, HttpsClient(file), file, tmp_path)
            site.expose("web", "10.0.0.80", {"port": 80, "protocol": "TCP"}, [8001])
            log = tmp_path / "proxy.log"
            arguments = [f"--kubeconfig={file}", "--hostname-override=node1"]
            process = namespace.start(command("proxy", *arguments, "--conntrack-max-per-core=0"), log, environment())
            site.until_rules("default/web -> 10.10.0.5:8001", '"default/kubernetes:https cluster IP"')
            site.call("PUT", f"{SLICES}/web-8001", endpoint_slice("web", "web-8001", "TCP", 8002))
            site.until_rules("default/web -> 10.10.0.5:8002")
            process.terminate()
            assert process.wait(20) == 0
        finally:
            namespace.within(lambda: server.__exit__(None, None, None))
