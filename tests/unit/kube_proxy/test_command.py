"""Tests of the command line and the configuration file of `tetrapod proxy`.

The error texts are those of kube-proxy v1.37.1.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tetrapod.cli.main import main
from tetrapod.generic.configuration import feature_gates
from tetrapod.kube_proxy import configuration_file
from tetrapod.kube_proxy.configuration import Configuration
from tetrapod.kube_proxy.sysctls import Conntrack, connection_limit

HEAD = "apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\n"
DEFAULTS = Path(__file__).parents[2] / "facts/kube_proxy_configuration.yaml"
ROOT = "KubeProxyConfiguration"


@pytest.fixture(autouse=True)
def _default_gates() -> None:
    feature_gates.configure([])


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["proxy", *arguments])


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (
            "--iptables-masquerade-bit=40",
            f"{ROOT}.KubeProxyIPTablesConfiguration.MasqueradeBit: Invalid value: 40: must be within the range [0, 31]",
        ),
        (
            "--iptables-sync-period=0s",
            f'[{ROOT}.SyncPeriod: Invalid value: "0s": must be greater than 0, {ROOT}.SyncPeriod: Invalid value: "1s": '
            f"must be greater than or equal to {ROOT}.MinSyncPeriod]",
        ),
        (
            "--nodeport-addresses=x,primary,primary",
            f'[{ROOT}.NodePortAddresses[0]: Invalid value: "x": must be a valid CIDR or one of the keywords '
            f"'primary', 'localhost', 'all', {ROOT}.NodePortAddresses[2]: Duplicate value: \"primary\"]",
        ),
        (
            "--detect-local-mode=Foo",
            f'{ROOT}.DetectLocalMode: Unsupported value: "Foo": supported values: "ClusterCIDR", "NodeCIDR", '
            '"BridgeInterface", "InterfaceNamePrefix", ""',
        ),
        (
            "--detect-local-mode=BridgeInterface",
            f'{ROOT}.DetectLocalConfiguration.InterfaceName: Invalid value: "": must not be empty',
        ),
        (
            "--cluster-cidr=1,2,3",
            f'{ROOT}.DetectLocalConfiguration.ClusterCIDRs: Invalid value: ["1","2","3"]: must be a either a single '
            "CIDR or dual-stack pair of CIDRs (e.g. [10.100.0.0/16, fde4:8dba:82e1::/48]",
        ),
        (
            "--proxy-mode=x",
            f'{ROOT}.Mode.ProxyMode: Invalid value: "x": must be iptables, ipvs, nftables or blank (blank means the '
            "best-available proxy [currently iptables])",
        ),
        (
            "--conntrack-min=-1 --oom-score-adj=1001",
            f"[{ROOT}.KubeProxyLinuxConfiguration.KubeProxyConntrackConfiguration.Min: Invalid value: -1: must be "
            f"greater than or equal to 0, {ROOT}.KubeProxyLinuxConfiguration.OOMScoreAdj: Invalid value: 1001: must be "
            "within the range [-1000, 1000]]",
        ),
        (
            "--metrics-bind-address=1:2 --healthz-bind-address=1.2.3.4:0",
            f'[{ROOT}.HealthzBindAddress: Invalid value: "0": must be a valid port, {ROOT}.MetricsBindAddress: Invalid '
            'value: "1": must be a valid IP]',
        ),
    ],
)
def test_invalid_settings_are_rejected_with_upstreams_messages(arguments: str, text: str) -> None:
    result = run(*arguments.split())
    assert (result.exit_code, result.output) == (1, f"Error: failed validate: {text}\n")


@pytest.mark.parametrize("mode", ["ipvs", "nftables"])
def test_other_modes_are_rejected(mode: str) -> None:
    result = run(f"--proxy-mode={mode}")
    assert (result.exit_code, result.exception) == (1, result.exception)
    assert f"the mode {mode} does not exist here, only iptables" in result.output


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ("--config=/nonexistent", "open /nonexistent: no such file or directory"),
        ("--feature-gates=NoSuchGate=true", "unrecognized feature gate: NoSuchGate"),
        ("--feature-gates=A", "missing bool value for A"),
    ],
)
def test_settings_that_cannot_be_completed_are_rejected(arguments: str, text: str) -> None:
    result = run(arguments)
    assert (result.exit_code, result.output) == (1, f"Error: failed complete: {text}\n")


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (
            f"{HEAD}oomScoreAdj: abc\n",
            "json: cannot unmarshal string into Go struct field KubeProxyConfiguration.oomScoreAdj of type int32",
        ),
        (f"{HEAD}iptables: {{syncPeriod: 5x}}\n", 'time: unknown unit "x" in duration "5x"'),
        (
            HEAD.replace("Configuration\n", "ConfigurationX\n"),
            'no kind "KubeProxyConfigurationX" is registered for version "kubeproxy.config.k8s.io/v1alpha1" in scheme '
            '"pkg/runtime/scheme.go:111"',
        ),
    ],
)
def test_files_that_cannot_be_decoded_are_rejected(tmp_path: Path, content: str, text: str) -> None:
    file = tmp_path / "proxy.yaml"
    file.write_text(content)
    result = run(f"--config={file}")
    assert (result.exit_code, result.output) == (1, f"Error: failed complete: failed to decode: {text}\n")


def test_unknown_flags_are_rejected() -> None:
    result = run("--no-such-flag")
    assert result.exit_code == 2
    assert "No such option" in result.output and "--no-such-flag" in result.output  # click 8.1 has other quotes


def test_a_missing_kubeconfig_is_an_error_without_a_traceback() -> None:
    result = run("--kubeconfig=/nonexistent")
    assert (result.exit_code, result.output) == (1, "Error: stat /nonexistent: no such file or directory\n")


def test_a_process_outside_of_a_pod_needs_a_kubeconfig(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    assert run().output == (
        "Error: unable to load in-cluster configuration, KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT must be "
        "defined\n"
    )


def test_the_default_configuration_is_written_as_by_kube_proxy(tmp_path: Path) -> None:
    file = tmp_path / "proxy.yaml"
    result = run(f"--write-config-to={file}")
    assert (result.exit_code, file.read_text()) == (0, DEFAULTS.read_text())


def test_a_written_configuration_can_be_read_again(tmp_path: Path) -> None:
    configuration = Configuration(
        kubeconfig="/etc/kubeconfig",
        healthz_bind_address="[::]:10256",
        metrics_bind_address="0.0.0.0:1234",
        mode="iptables",
        masquerade_bit=0,
        localhost_node_ports=False,
        sync_period=90.0,
        detect_local_mode="BridgeInterface",
        bridge_interface="cni0",
        cluster_cidrs=("10.0.0.0/8", "fd00::/8"),
        node_port_addresses=("primary",),
        oom_score_adj=0,
        conntrack=Conntrack(max_per_core=0, tcp_established_timeout=5.0, tcp_be_liberal=True),
        feature_gates={"AllowServiceExternalIPs": False},
        verbosity=4,
    )
    file = tmp_path / "proxy.yaml"
    configuration_file.write(str(file), configuration)
    assert configuration_file.read(str(file)) == configuration


def test_unknown_fields_are_ignored_and_addresses_get_ports(tmp_path: Path) -> None:
    file = tmp_path / "proxy.yaml"
    file.write_text(f"{HEAD}unknown: 1\nbindAddress: '::'\nmetricsBindAddress: 192.0.2.1\n")
    configuration = configuration_file.read(str(file))
    assert configuration.healthz_bind_address == "[::]:10256"
    assert configuration.metrics_bind_address == "192.0.2.1:10249"


@pytest.mark.parametrize(("cores", "limit"), [(1, 131072), (8, 262144), (64, 1048576)])
def test_the_limit_of_connections_grows_with_the_cores(cores: int, limit: int) -> None:
    assert connection_limit(Conntrack(), cores) == limit
    assert connection_limit(Conntrack(max_per_core=0), cores) == 0
