"""The command line: `tetrapod up | serve SERVICE | certs | backup | restore | migrate | …`."""

from __future__ import annotations

import click

from tetrapod.cli.backup import backup
from tetrapod.cli.certs import certs
from tetrapod.cli.check_apiserver import check_apiserver
from tetrapod.cli.console import console
from tetrapod.cli.kube_apiserver import kube_apiserver
from tetrapod.cli.kubeconfig import kubeconfig
from tetrapod.cli.migrate import migrate
from tetrapod.cli.restore import restore
from tetrapod.cli.scaffolding import create, init
from tetrapod.cli.serve import serve
from tetrapod.cli.trace import trace
from tetrapod.cli.up import up
from tetrapod.cli.version import version, version_option


class _Commands(click.Group):
    """The commands. `proxy` is imported when it is used: its flags would cost each other command 10 ms."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted([*super().list_commands(ctx), "proxy"])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name == "proxy":
            from tetrapod.cli.proxy import proxy

            return proxy
        return super().get_command(ctx, cmd_name)


@click.group(cls=_Commands, params=[version_option()], context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """Run the Kubernetes API server as four Python services over one etcd, or as one process over SQLite."""


for _command in (
    up,
    serve,
    kubeconfig,
    version,
    certs,
    check_apiserver,
    trace,
    console,
    kube_apiserver,
    backup,
    restore,
    migrate,
    init,
    create,
):
    main.add_command(_command)

if __name__ == "__main__":
    main()
