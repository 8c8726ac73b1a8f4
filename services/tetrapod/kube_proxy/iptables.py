"""Runs the programs iptables, iptables-save and iptables-restore, or those of IPv6.

Upstream: pkg/util/iptables/iptables.go
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from tempfile import TemporaryFile
from typing import Final

from tetrapod.kube_proxy.families import Family

_WAIT: Final = ("-w", "5")
"""Programs wait up to 5 seconds while another one changes the rules."""
_CHECK_SECONDS: Final = 300.0
_DENIED: Final = 1
"""The exit code if a chain exists already, or a rule does not exist."""
_RESOURCE_PROBLEM: Final = 4
"""The exit code if the program could not try, for instance because others changed the rules for too long."""
_NOT_FOUND: Final = (
    "No chain/target/match by that name",
    "No such file or directory",
    "does a matching rule exist",
    "does not exist",
)
_FAILED_LINE: Final = re.compile(r"line ([1-9][0-9]*) failed$")


class IPTablesError(Exception):
    """A program failed.

    Attributes:
        code: its exit code.
        output: its output.
    """

    def __init__(self, program: str, code: int, output: str) -> None:
        super().__init__(f"{program}: exit status {code}: {output.strip()}")
        self.code = code
        self.output = output

    @property
    def is_not_found(self) -> bool:
        """Whether a chain or a rule does not exist."""
        return any(text in self.output for text in _NOT_FOUND)

    @property
    def could_not_try(self) -> bool:
        """Whether nothing is known about the chain, since the program could not try."""
        return self.code == _RESOURCE_PROBLEM

    def failed_line(self) -> int | None:
        """Return the line of the input that iptables-restore rejected, from 1; None if the output does not say."""
        match = _FAILED_LINE.search(self.output.strip())
        return int(match[1]) if match else None


class IPTables:
    """The rules of one IP family. All methods raise IPTablesError if the program fails, and OSError if it is missing.

    Attributes:
        family: the family.
    """

    def __init__(self, family: Family) -> None:
        self.family = family
        self._program = "ip6tables" if family is Family.IPV6 else "iptables"

    async def check_present(self) -> None:
        """Check that the kernel has rules of the family."""
        await self.list_chain("nat", "POSTROUTING")

    async def ensure_chain(self, table: str, chain: str) -> None:
        """Create a chain if it does not exist."""
        try:
            await self._change("-N", table, chain)
        except IPTablesError as error:
            if error.code != _DENIED:
                raise

    async def delete_chain(self, table: str, chain: str) -> None:
        """Delete an empty chain."""
        await self._change("-X", table, chain)

    async def list_chain(self, table: str, chain: str) -> None:
        """Raise IPTablesError if a chain does not exist."""
        await self._change("-S", table, chain)

    async def ensure_rule(self, table: str, chain: str, rule: Sequence[str]) -> None:
        """Insert a rule at the beginning of a chain, unless the chain has it."""
        if not await self._has(table, chain, rule):
            await self._change("-I", table, chain, *rule)

    async def delete_rule(self, table: str, chain: str, rule: Sequence[str]) -> None:
        """Delete a rule if the chain has it."""
        if await self._has(table, chain, rule):
            await self._change("-D", table, chain, *rule)

    async def save(self, table: str) -> str:
        """Return the chains and rules of a table."""
        return await _run(f"{self._program}-save", "-t", table)

    async def restore(self, data: str, table: str = "") -> None:
        """Apply chains and rules at once, or none of them. Chains that the data does not name are kept.

        Args:
            data: the input of iptables-restore.
            table: the only table to change; "" for all tables in the data.
        """
        only = ("-T", table) if table else ()
        await _run(f"{self._program}-restore", *_WAIT, *only, "--noflush", "--counters", data=data)

    async def _has(self, table: str, chain: str, rule: Sequence[str]) -> bool:
        try:
            async with asyncio.timeout(_CHECK_SECONDS):
                await self._change("-C", table, chain, *rule)
        except IPTablesError as error:
            if error.code == _DENIED:
                return False
            raise
        return True

    async def _change(self, operation: str, table: str, chain: str, *rule: str) -> None:
        await _run(self._program, *_WAIT, operation, chain, "-t", table, *rule)


async def _run(program: str, *arguments: str, data: str = "") -> str:
    # The input is a file, because uvloop fails if the program ends before it has read all of a pipe.
    with TemporaryFile() as stdin:
        stdin.write(data.encode())
        stdin.seek(0)
        process = await asyncio.create_subprocess_exec(
            program, *arguments, stdin=stdin, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
        )
    try:
        out, errors = await process.communicate()
    except BaseException:
        if process.returncode is None:
            process.kill()
        raise
    if process.returncode:
        raise IPTablesError(program, process.returncode, (out + errors).decode("utf-8", "replace"))
    return out.decode("utf-8", "replace")


async def usable() -> dict[Family, IPTables]:
    """Return the families that this machine has rules of."""
    families = {}
    for family in Family:
        iptables = IPTables(family)
        try:
            await iptables.check_present()
        except (IPTablesError, OSError):
            continue
        families[family] = iptables
    return families
