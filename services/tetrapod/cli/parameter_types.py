"""Types of command-line values that click does not have."""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING, Any

import click

from tetrapod.machinery.golang.durations import parse_duration

if TYPE_CHECKING:
    _SecondsType = click.ParamType[float]
    _TextType = click.ParamType[str]
else:  # before click 8.4 it is not generic
    _SecondsType = _TextType = click.ParamType


class Duration(_SecondsType):
    """The type of a duration as Go writes it, such as 1m30s. The value is in seconds."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return a duration in seconds. A number is returned as a float.

        Raises:
            click.BadParameter: the text is not a duration.
        """
        if isinstance(value, int | float):
            return float(value)
        try:
            return parse_duration(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


class IP(_TextType):
    """The type of an IP address. As upstream, an unspecified address (0.0.0.0 or ::) counts as unset."""

    name = "ip"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return an IP address in canonical form; "" if it is empty or unspecified.

        Raises:
            click.BadParameter: the text is not an IP address.
        """
        try:
            address = ipaddress.ip_address(value) if value else None
            return str(address) if address is not None and not address.is_unspecified else ""
        except ValueError:
            self.fail(f'failed to parse IP: "{value}"', param, ctx)
