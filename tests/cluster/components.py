"""The stock controller manager and scheduler."""

from __future__ import annotations

from cluster.credentials import Credentials
from cluster.processes import Processes
from cluster.settings import HOST, PODS, SERVICES, Paths

MANAGER = "kube-controller-manager"
SCHEDULER = "kube-scheduler"


def start_components(paths: Paths, processes: Processes, credentials: Credentials) -> None:
    """Start both programs."""
    for name in (MANAGER, SCHEDULER):
        kubeconfig = credentials.kubeconfig(name, f"system:{name}")
        argv = [str(paths.stock_programs / name)]
        argv += [f"--{kind}kubeconfig={kubeconfig}" for kind in ("", "authentication-", "authorization-")]
        argv += [f"--bind-address={HOST}", f"--cert-dir={paths.state / name}", "--leader-elect=false", "-v=2"]
        argv += _manager_flags(credentials) if name == MANAGER else []
        processes.start(name, argv)


def _manager_flags(credentials: Credentials) -> list[str]:
    pki = credentials.pki
    return [
        "--controllers=*,bootstrap-signer-controller,token-cleaner-controller",
        "--use-service-account-credentials",
        f"--service-account-private-key-file={pki.service_account_key}",
        f"--root-ca-file={pki.ca}",
        f"--cluster-signing-cert-file={pki.client_ca}",
        f"--cluster-signing-key-file={pki.key('client-ca')}",
        # The nodes have their pod CIDRs already. The controller assigns one to any other node.
        "--allocate-node-cidrs",
        f"--cluster-cidr={PODS}",
        f"--service-cluster-ip-range={SERVICES}",
    ]
