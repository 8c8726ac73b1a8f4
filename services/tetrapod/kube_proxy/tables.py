"""The input of iptables-restore: chains and rules of the tables filter and nat."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class Table:
    """The lines of one table.

    Attributes:
        name: the name of the table.
        chains: the names of chains, which are created or emptied.
        rules: the rules, as `-A CHAIN …`, and deletions of chains, as `-X CHAIN`.
    """

    name: str
    chains: list[str] = field(default_factory=list)
    rules: list[str] = field(default_factory=list)

    def text(self) -> str:
        """Return the table as iptables-restore reads it."""
        chains = [f":{chain} - [0:0]" for chain in self.chains]
        return "\n".join([f"*{self.name}", *chains, *self.rules, "COMMIT", ""])


def quoted(comment: str) -> str:
    """Return the match with a comment that contains spaces."""
    return f'-m comment --comment "{comment}"'


def chains_in(saved: str) -> set[str]:
    """Return the names of the chains in the output of iptables-save for one table."""
    return {line[1:].partition(" ")[0] for line in saved.splitlines() if line.startswith(":")}
