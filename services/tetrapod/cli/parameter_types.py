"""Types of command-line values that click does not have."""

from __future__ import annotations

import ipaddress
from typing import Any

import click

from tetrapod.machinery.golang.durations import parse_duration


class Duration(click.ParamType[float]):
    """A duration as Go writes it, such as 1m30s; its value is in seconds."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Parse a duration."""
        if isinstance(value, int | float):
            return float(value)
        try:
            return parse_duration(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


class IP(click.ParamType[str]):
    """An IP address. As upstream, an unspecified address counts as unset."""

    name = "ip"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Parse an IP address. The value is an empty string if none is set."""
        try:
            address = ipaddress.ip_address(value) if value else None
            return str(address) if address is not None and not address.is_unspecified else ""
        except ValueError:
            self.fail(f'failed to parse IP: "{value}"', param, ctx)
