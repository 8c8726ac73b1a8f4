"""Write docs/images/quick-start.svg: a terminal in which the first commands of README.md run, with their real output.

`make screenshots` runs it. It starts a server of its own, with another port and directory than the picture says, and
needs kubectl.
"""

from __future__ import annotations

import io
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

ROOT: Final = Path(__file__).parent.parent
OUT: Final = ROOT / "docs/images/quick-start.svg"
WIDTH: Final = 96
OF_OTHER_SITES: Final = re.compile(r"@font-face \{.*?\}\s*|<!--.*?-->\s*", re.DOTALL)
"""Fonts from another site, in whose place a reader's own are used, and an advertisement."""


def main() -> None:
    sys.path.insert(0, str(ROOT / "tests"))
    from support.kubectl import Kubectl
    from support.server import running

    console = Console(record=True, width=WIDTH, file=io.StringIO(), highlight=False)
    with tempfile.TemporaryDirectory() as name, running(Path(name) / "data") as server:
        console.print(prompt("tetrapod up"))
        console.print("Tetrapod is ready: https://127.0.0.1:6443 (data in data/tetrapod.db)")
        console.print("  export KUBECONFIG=data/kubeconfig\n  kubectl get namespaces\n", style="dim")
        kubectl = Kubectl(Path(name), server.kubeconfig)
        for line in commands():
            console.print(prompt(line))
            done = subprocess.run(
                ["sh", "-c", line], env=kubectl.env(), capture_output=True, text=True, timeout=60, check=False
            )
            assert done.returncode == 0, done.stderr
            console.print(cut(done.stdout))
    svg = console.export_svg(title="tetrapod", theme=MONOKAI)
    OUT.write_text(OF_OTHER_SITES.sub("", svg).replace("Fira Code", "ui-monospace, Menlo, Consolas"))


def prompt(line: str) -> Text:
    return Text.assemble(("$ ", "bold green"), (line, "bold"))


def commands() -> list[str]:
    """Return the commands of the block of README.md that begins with `export KUBECONFIG`, without that line."""
    block = re.search(
        r"```\nexport KUBECONFIG=\$PWD/data/kubeconfig\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL
    )
    assert block is not None
    return block[1].splitlines()


def cut(text: str, lines: int = 9) -> str:
    """Return the first lines of an output."""
    every = [line[:WIDTH] for line in text.rstrip().splitlines()]
    return "\n".join([*every[:lines], *(["…"] if len(every) > lines else [])]) + "\n"


if __name__ == "__main__":
    main()
