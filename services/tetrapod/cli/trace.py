"""`tetrapod trace`: sends a request and prints its trace through the server.

The trace comes from generic/observability/tracing/trace_endpoint.py.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final

import click

from tetrapod.cli.servers import kubeconfig_options, server_of

if TYPE_CHECKING:
    from tetrapod.generic.http.request import HeaderList
    from tetrapod.generic.webhook.kubeconfig import Target

_TYPES: Final = {"PATCH": "application/merge-patch+json"}
_TIMEOUT: Final = 100.0


@click.command("trace")
@click.argument("method")
@click.argument("path")
@kubeconfig_options("The user must be in the group system:masters.")
@click.option(
    "--filename", "-f", type=click.File("rb"), help="The file with the request body; - is the standard input."
)
@click.option(
    "--content-type",
    default="",
    help="The media type of the body; by default application/yaml, or a merge patch for PATCH.",
)
@click.option("--header", "-H", "headers", multiple=True, help="An additional header, 'Name: value'. May be repeated.")
@click.option("--output", "-o", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option(
    "--html",
    "html_file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the trace as a page to this file instead of printing it.",
)
def trace(  # noqa: PLR0913 - click passes each option
    method: str,
    path: str,
    kubeconfig: str,
    context: str,
    filename: BinaryIO | None,
    content_type: str,
    headers: tuple[str, ...],
    output: str,
    html_file: Path | None,
) -> None:
    """Send a request and print its path through the server.

    The trace has each filter, admission plugin and storage call, with times. The request METHOD PATH has its effects,
    unless PATH contains ?dryRun=All. A watch, exec or followed log is traced until it has begun.
    """
    import orjson

    from tetrapod.generic.observability.tracing.report import text

    method, body = method.upper(), filename.read() if filename is not None else b""
    sent = [
        (name.strip().lower().encode(), value.strip().encode())
        for name, _, value in (h.partition(":") for h in headers)
    ]
    if body:
        sent.append((b"content-type", (content_type or _TYPES.get(method, "application/yaml")).encode()))
    status, answer = _send(
        server_of(kubeconfig, context), method, f"{path}{'&' if '?' in path else '?'}trace=1", sent, body
    )
    report = _report(answer) if status == 200 else None
    if report is None:
        raise click.ClickException(
            f"the server answered {status}, without a trace: {answer.decode('utf-8', 'replace').strip()}"
        )
    if html_file is not None:
        from tetrapod.console.waterfall import page

        html_file.write_text(page(report), "utf-8")
        return
    click.echo(
        orjson.dumps(report, option=orjson.OPT_INDENT_2).decode() if output == "json" else text(report),
        nl=output == "json",
    )


def _report(body: bytes) -> dict[str, Any] | None:
    import orjson

    try:
        report = orjson.loads(body)
    except ValueError:
        return None
    return report if isinstance(report, dict) and "spans" in report and "traceID" in report else None


def _send(server: Target, method: str, target: str, headers: HeaderList, body: bytes) -> tuple[int, bytes]:
    import asyncio

    from tetrapod.generic.proxy import BackendError, BackendPool

    async def send() -> tuple[int, bytes]:
        pool = BackendPool()
        try:
            url = server.url.rstrip("/") + target
            status, _, answer = await pool.fetch(
                method, url, body, [*headers, *server.auth_headers()], _TIMEOUT, tls=server.endpoint.tls
            )
            return status, answer
        finally:
            await pool.close()

    try:
        return asyncio.run(send())
    except (BackendError, TimeoutError, OSError) as error:
        raise click.ClickException(f"{server.url} cannot be asked: {error or type(error).__name__}") from None
