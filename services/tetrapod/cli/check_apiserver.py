"""`tetrapod check-apiserver`: whether a server, in whatever language, does what the aggregation layer requires of it."""

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
@click.option("--data-dir", type=click.Path(path_type=Path), default=Path("data"), show_default=True, help="Of `up`: its front proxy asks.")
@click.option("--proxy-client-cert-file", type=click.Path(path_type=Path), help="Instead: the certificate of a front proxy,")
@click.option("--proxy-client-key-file", type=click.Path(path_type=Path), help="and its key.")
@click.option("--certificate-authority", type=click.Path(path_type=Path), help="The CA of the server's certificate; else any is believed.")
@click.option("--output", "-o", type=click.Choice(["text", "json"]), default="text", show_default=True)
def check_apiserver(
    url: str,
    group_version: str,
    data_dir: Path,
    proxy_client_cert_file: Path | None,
    proxy_client_key_file: Path | None,
    certificate_authority: Path | None,
    output: str,
) -> None:
    """Check the aggregated API server at URL (https://HOST:PORT): what fails, and why it matters. Exits with 1 if something fails.

    The server must belong to a cluster whose front proxy we have the certificate of: it is asked as the aggregator asks.
    """
    import json  # all of it here: other commands start without
    from dataclasses import asdict

    from tetrapod.generic.aggregated.checks import Subject, run_checks
    from tetrapod.generic.aggregated.conversation import Conversation
    from tetrapod.generic.certificates.pki import Pki
    from tetrapod.machinery.gvk import GroupVersion

    group, _, version = group_version.partition("/")
    if not (group and version):
        raise click.UsageError(f"want GROUP/VERSION, got {group_version}")
    if not url.startswith("https://"):
        raise click.UsageError(f"want https://HOST:PORT, got {url}: the aggregator speaks TLS to every server")
    certificate, key = Pki(data_dir / "pki").front_proxy_client
    talk = Conversation(url, proxy_client_cert_file or certificate, proxy_client_key_file or key, certificate_authority)
    for file in (talk.certificate, talk.key):
        if not file.is_file():
            raise click.ClickException(f"no such file: {file}; --proxy-client-cert-file and --proxy-client-key-file name a front proxy's")
    findings = list(run_checks(Subject(talk, GroupVersion(group, version))))
    if output == "json":
        click.echo(json.dumps([asdict(finding) for finding in findings], indent=2))
    else:
        _tell(findings)
    if any(finding.outcome == "fail" for finding in findings):
        raise SystemExit(1)


def _tell(findings: list[Finding]) -> None:
    for finding in findings:
        click.echo(f"{_MARKS[finding.outcome]} {finding.check}" + (f": {finding.detail}" if finding.detail else ""))
        if finding.outcome == "fail":
            click.echo(f"     why: {finding.why}")
    failed = sum(finding.outcome == "fail" for finding in findings)
    click.echo(f"{len(findings)} checks, {failed} failed")
