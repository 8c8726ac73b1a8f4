"""Write docs/reference/all-flags.md, the table of all flags, from the declarations in `apps/options` and `cli`.

python tools/generate_flags.py
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tetrapod.apps.options.flag import ALL, Flag, Kind, declared_flags, format_value
from tetrapod.apps.options.options import Options
from tetrapod.cli.proxy_flags import ProxyFlags

OUTPUT = Path(__file__).parent.parent / "docs/reference/all-flags.md"
PROGRAMS = {
    "up": "`tetrapod up`",
    "aggregator": "aggregator",
    "core": "core",
    "extensions": "extensions",
    "auth": "auth",
}
HEAD = """# All flags

This page is for administrators. It lists the flags of `tetrapod up` (also those of `tetrapod-kube-apiserver`) and of
`tetrapod serve SERVICE`, in the sections of `--help`, and those of `tetrapod proxy`. [flags.md](flags.md) compares the
flags of the servers with kube-apiserver's. The page is written by `python tools/generate_flags.py`.
"""
PROXY_HEAD = """
## Flags of `tetrapod proxy`

These are flags of kube-proxy. [how-to/proxy.md](../how-to/proxy.md) says what differs.
"""


def main() -> None:
    OUTPUT.write_text(document())


def document() -> str:
    """Return the page."""
    sections: dict[str, list[str]] = {}
    for flag, default in declared_flags(Options()):
        sections.setdefault(flag.section, []).append(_row(flag, default))
    proxy: dict[str, list[str]] = {}
    for flag, default in declared_flags(ProxyFlags()):
        proxy.setdefault(flag.section, []).append(_cells(flag, default, ""))
    head = "| flag | type | default | accepted by | |\n|---|---|---|---|---|"
    proxy_head = "| flag | type | default | |\n|---|---|---|---|"
    return HEAD + _tables("##", head, sections) + PROXY_HEAD + _tables("###", proxy_head, proxy)


def _tables(level: str, head: str, sections: dict[str, list[str]]) -> str:
    return "".join(f"\n{level} {section}\n\n{head}\n" + "\n".join(rows) + "\n" for section, rows in sections.items())


def _row(flag: Flag, default: Any) -> str:
    programs = (
        "all"
        if flag.programs == ALL
        else ", ".join(title for program, title in PROGRAMS.items() if program in (flag.programs or ()))
    )
    return _cells(flag, default, f" {programs} |")


def _cells(flag: Flag, default: Any, programs: str) -> str:
    name = f"`--{flag.name}`" if len(flag.name) > 1 else f"`-{flag.name}`"
    written = format_value(flag, default).strip("[]") if flag.kind is Kind.LIST else format_value(flag, default)
    shown = f"`{written}`" if written not in ("", "[]") else ""
    kind = " or ".join(flag.choices) or flag.kind.value
    return f"| {name} | {kind} | {shown} |{programs} {flag.help} |"


if __name__ == "__main__":
    main()
