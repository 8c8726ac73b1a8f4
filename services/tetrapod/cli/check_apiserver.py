"""`tetrapod check-apiserver`: checks whether an API server meets the requirements of the aggregation layer."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from tetrapod.generic.aggregated.checks import Finding

_MARKS = {"pass": "ok  ", "fail": "FAIL", "skip": "skip"}


@click.command("check-apiserver")
@click.argument("url")
@click.argument("group_version", metavar="GROUP/VERSION")
@click.option(
    "--data-dir",
    type=click.Path(path_type=Path),
    default=Path("data"),
    show_default=True,
    help="The data directory of `up`, with the credentials of its front proxy.",
)
@click.option(
    "--proxy-client-cert-file", type=click.Path(path_type=Path), help="The client certificate of another front proxy."
)
@click.option("--proxy-client-key-file", type=click.Path(path_type=Path), help="The key of --proxy-client-cert-file.")
@click.option(
    "--certificate-authority",
    type=click.Path(path_type=Path),
    help="The CA of the server certificate. Default: any certificate is accepted.",
)
@click.option(
    "--service", metavar="NAMESPACE/NAME", help="The Service of the APIService, whose name the certificate must have."
)
@click.option("--output", "-o", type=click.Choice(["text", "json"]), default="text", show_default=True)
def check_apiserver(
    url: str,
    group_version: str,
    data_dir: Path,
    proxy_client_cert_file: Path | None,
    proxy_client_key_file: Path | None,
    certificate_authority: Path | None,
    service: str | None,
    output: str,
) -> None:
    """Check an aggregated API server.

    URL is its address (https://HOST:PORT), and GROUP/VERSION what it serves. Prints each requirement that the server
    fails, with its reason, and exits with 1 if there are any. Requests are sent with the credentials of the front proxy
    that the server trusts, as the aggregator sends them.
    """
    import json  # imported here, because other commands do not need these modules
    from dataclasses import asdict

    from tetrapod.generic.aggregated.check_client import CheckClient
    from tetrapod.generic.aggregated.checks import Subject, run_checks
    from tetrapod.generic.certificates.pki import Pki
    from tetrapod.machinery.gvk import GroupVersion

    group, _, version = group_version.partition("/")
    if not (group and version):
        raise click.UsageError(f"want GROUP/VERSION, got {group_version}")
    if not url.startswith("https://"):
        raise click.UsageError(f"want https://HOST:PORT, got {url}: the aggregator connects to servers by TLS only")
    namespace, _, name = (service or "").partition("/")
    if service and not (namespace and name):
        raise click.UsageError(f"want NAMESPACE/NAME, got {service}")
    certificate, key = Pki(data_dir / "pki").front_proxy_client
    client = CheckClient(
        url,
        proxy_client_cert_file or certificate,
        proxy_client_key_file or key,
        certificate_authority,
        f"{name}.{namespace}.svc" if service else "",
    )
    for file in (client.certificate, client.key):
        if not file.is_file():
            raise click.ClickException(
                f"{file} does not exist; set --proxy-client-cert-file and --proxy-client-key-file"
            )
    findings = list(run_checks(Subject(client, GroupVersion(group, version))))
    if output == "json":
        click.echo(json.dumps([asdict(finding) for finding in findings], indent=2))
    else:
        _print(findings)
    if any(finding.outcome == "fail" for finding in findings):
        raise SystemExit(1)


def _print(findings: list[Finding]) -> None:
    for finding in findings:
        click.echo(f"{_MARKS[finding.outcome]} {finding.check}" + (f": {finding.detail}" if finding.detail else ""))
        if finding.outcome == "fail":
            click.echo(f"     why: {finding.why}")
    failed = sum(finding.outcome == "fail" for finding in findings)
    click.echo(f"{len(findings)} checks, {failed} failed")
