"""Resource quantities such as `100m`, `1.5Gi` and `1e3`: parsing, arithmetic, comparison and the canonical form.

Objects contain quantities as strings; defaulting canonicalizes them with `canonical`, and admission and quota compute
with them. A text that is canonical already, or nearly, is kept as it was sent.

Upstream: k8s.io/apimachinery/pkg/api/resource/quantity.go.
"""

from __future__ import annotations

from typing import Any, Final, Literal, NoReturn, TypeAlias

from tetrapod.machinery.boundedcache import bounded, weigh

Format: TypeAlias = Literal["DecimalSI", "BinarySI", "DecimalExponent"]

FORMAT_TEXT: Final = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
NUMERIC_TEXT: Final = "unable to parse numeric part of quantity"
SUFFIX_TEXT: Final = "unable to parse quantity's suffix"

NANO: Final = 10**9
_MAX_INT64: Final = (1 << 63) - 1
_MAX_DIGITS: Final = 18
_MAX_EXPONENT: Final = 4_000
"""The largest decimal exponent, and the most digits.

Upstream computes lazily and accepts larger exponents. They are of no practical use, and would fill the memory here.
"""
_DECIMAL: Final = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL_SUFFIX: Final = {exponent: suffix for suffix, exponent in _DECIMAL.items()}
_BINARY_SUFFIX: Final = {0: "", **{exponent: suffix for suffix, exponent in _BINARY.items()}}
_DIGITS: Final = frozenset("0123456789")
_SUFFIX_CHARS: Final = frozenset("eEinumkKMGTP")


class Quantity:
    """A resource quantity: an amount in billionths (`nano`), and the format it was written in; immutable.

    `str()` returns its text: the one it was parsed from if upstream keeps that, else the canonical form. Quantities are
    equal if their amounts are, regardless of their formats. A sum has the format of the left operand, unless that is
    zero.

    Attributes:
        nano: the amount in billionths.
        fmt: the format.
    """

    __slots__ = ("format", "nano", "text")

    def __init__(self, nano: int, fmt: Format = "DecimalSI", text: str = "") -> None:
        self.nano = nano
        self.format: Format = fmt
        self.text = text

    @classmethod
    def parse(cls, text: str) -> Quantity:
        """Parse a quantity.

        Raises:
            ValueError: the text is invalid; with upstream's text.
        """
        return _parse(text)

    @classmethod
    def of(cls, value: Any) -> Quantity:
        """Return the quantity of a value in an object: a text, which may be in white space, a number, or None for zero.

        Raises:
            ValueError: the value is not a quantity; with upstream's text.
        """
        if isinstance(value, str):
            return _parse(value.strip())
        if value is None:
            return ZERO
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise ValueError(FORMAT_TEXT)
        return _parse(format(value, ".17g") if isinstance(value, float) and value.is_integer() else str(value))

    @classmethod
    def from_int(cls, value: int) -> Quantity:
        """Return the quantity of a whole number, whose text has the format `DecimalSI`."""
        return cls(value * NANO, "DecimalSI")

    def __str__(self) -> str:
        if not self.text:
            self.text = _canonical(self.nano, self.format)
        return self.text

    def __repr__(self) -> str:
        return f"Quantity({str(self)!r})"

    @property
    def value(self) -> int:
        """Return the amount in whole units as an int64, rounded up.

        Upstream: Value.
        """
        return self._int64(-(-self.nano // NANO))

    @property
    def milli_value(self) -> int:
        """Return the amount in thousandths as an int64, rounded up.

        Upstream: MilliValue.
        """
        return self._int64(-(-self.nano // 10**6))

    def _int64(self, value: int) -> int:
        """Return a scaled amount as upstream does: an amount beyond int64 is 0, or its lowest 64 bits.

        It is 0 if upstream computes with int64 for this quantity (`_is_small`).
        """
        if -_MAX_INT64 - 1 <= value <= _MAX_INT64:
            return value
        if _precision(str(self))[0]:
            return 0
        low = value & (1 << 64) - 1
        return low - (1 << 64) if low > _MAX_INT64 else low

    @property
    def is_zero(self) -> bool:
        """Return whether the quantity is zero."""
        return self.nano == 0

    @property
    def sign(self) -> int:
        """Return -1 if the quantity is negative, 0 if it is zero, and 1 if it is positive."""
        return (self.nano > 0) - (self.nano < 0)

    def as_int64(self) -> int | None:
        """Return the amount if it is a whole number within int64, or None otherwise."""
        whole, rest = divmod(self.nano, NANO)
        return whole if not rest and -_MAX_INT64 - 1 <= whole <= _MAX_INT64 else None

    def round_up(self, scale: int) -> Quantity:
        """Return the quantity rounded away from zero to a multiple of 10^`scale`, such as thousandths for -3.

        It is the same object, with its text, if it is such a multiple already.
        """
        unit = _ten_to(9 + scale)
        if self.nano % unit == 0:
            return self
        nano = -(-abs(self.nano) // unit) * unit
        return Quantity(nano if self.nano > 0 else -nano, self.format)

    def cmp(self, other: Quantity) -> int:
        """Return -1, 0 or 1 if this quantity is less than, equal to or greater than the other."""
        return (self.nano > other.nano) - (self.nano < other.nano)

    def __add__(self, other: Quantity) -> Quantity:
        return Quantity(self.nano + other.nano, self.format if self.nano else other.format)

    def __sub__(self, other: Quantity) -> Quantity:
        return Quantity(self.nano - other.nano, self.format if self.nano else other.format)

    def __mul__(self, factor: int) -> Quantity:
        return Quantity(self.nano * factor, self.format)

    def __neg__(self) -> Quantity:
        return Quantity(-self.nano, self.format)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Quantity) and self.nano == other.nano

    def __hash__(self) -> int:
        return hash(self.nano)

    def __lt__(self, other: Quantity) -> bool:
        return self.nano < other.nano

    def __le__(self, other: Quantity) -> bool:
        return self.nano <= other.nano

    def __gt__(self, other: Quantity) -> bool:
        return self.nano > other.nano

    def __ge__(self, other: Quantity) -> bool:
        return self.nano >= other.nano


ZERO: Final = Quantity(0, "DecimalSI", "0")


def canonical(value: Any) -> str:
    """Return the text that an object stores for the quantity `value` of a request.

    It is in canonical form, or as the client sent it where upstream keeps that, such as `1.500`.

    Raises:
        ValueError: the value is not a quantity; with upstream's text.
    """
    return str(Quantity.of(value))


def decimal_text(text: str) -> str:
    """Return the quantity `text` as a decimal number, with as many digits after the point as were given.

    It is `1.200` for `1200m`.

    Upstream: AsDec, and String of gopkg.in/inf.v0's Dec.

    Raises:
        ValueError: the text is not a quantity; with upstream's text.
    """
    nano = _parse(text).nano
    small, scale = _precision(text)
    places = max(-scale, 0) if small or not nano else 9
    units, rest = divmod(abs(nano), NANO)
    return f"{'-' if nano < 0 else ''}{units}{f'.{rest:09}'[: places + 1] if places else ''}"


def _split(text: str) -> tuple[bool, str, str, str]:
    """Return whether a quantity is negative, its digits before and after the point, and its suffix.

    The digits before the point have no leading zeros. For a text without such digits, such as `.5`, they are "0".

    Raises:
        ValueError: further characters follow the suffix.
    """
    negative = text[0] == "-"
    at = 1 if text[0] in "+-" else 0
    end = len(text)
    while at < end and text[at] == "0":
        at += 1
    start = at
    while at < end and text[at] in _DIGITS:
        at += 1
    whole = text[start:at] or "0"
    fraction = ""
    if at < end and text[at] == ".":
        start = at = at + 1
        while at < end and text[at] in _DIGITS:
            at += 1
        fraction = text[start:at]
    suffix_start = at
    while at < end and text[at] in _SUFFIX_CHARS:
        at += 1
    if at < end and text[at] in "+-":
        at += 1
    while at < end and text[at] in _DIGITS:
        at += 1
    if at < end:
        _fail(FORMAT_TEXT)
    return negative, whole, fraction, text[suffix_start:]


def _fail(text: str) -> NoReturn:
    raise ValueError(text)


def _interpret(suffix: str) -> tuple[int, Format]:
    """Return the exponent and the format of a suffix. The base of the exponent is 2 for BinarySI, else 10.

    Raises:
        ValueError: the suffix is unknown, or its exponent is too large.
    """
    if suffix in _DECIMAL:
        return _DECIMAL[suffix], "DecimalSI"
    if suffix in _BINARY:
        return _BINARY[suffix], "BinarySI"
    if suffix[0] in "eE" and suffix[1:].lstrip("+-").isdigit() and len(suffix) < 20:
        exponent = int(suffix[1:])
        if exponent > _MAX_EXPONENT:
            _fail(NUMERIC_TEXT)
        return exponent, "DecimalExponent"
    _fail(SUFFIX_TEXT)


@bounded(count=8192, size=2 << 20, weigh_entry=lambda text, quantity: weigh((text, quantity.nano)) + 100)
def _parse(text: str) -> Quantity:
    """Return the quantity of a text without white space. A pod's are parsed ten times for each write.

    Raises:
        ValueError: the text is invalid; with upstream's text.
    """
    if text == "0":
        return ZERO
    if not text:
        _fail(FORMAT_TEXT)
    negative, whole, fraction, suffix = _split(text)
    exponent, fmt = _interpret(suffix)
    digits = whole + fraction
    if len(digits) > _MAX_EXPONENT:
        _fail(NUMERIC_TEXT)
    number = int(digits)
    scale = (0 if fmt == "BinarySI" else exponent) - len(fraction)
    if _is_small(fmt, whole, fraction, exponent, scale):
        kept = _is_kept(fmt, digits, number, scale)
        nano = number * (1 << exponent if fmt == "BinarySI" else 1) * _ten_to(scale + 9)
    else:
        kept = False
        nano = _large(fmt, number, exponent, scale)
        if fmt == "BinarySI" and 0 < nano < NANO:
            fmt = "DecimalSI"
    return Quantity(-nano if negative else nano, fmt, text if kept else "")


def _is_small(fmt: Format, whole: str, fraction: str, exponent: int, scale: int) -> bool:
    """Return whether upstream computes with int64 for a quantity of these parts.

    Upstream keeps the texts only of such quantities.

    Args:
        fmt: the format.
        whole: the digits before the point.
        fraction: the digits after the point.
        exponent: the exponent of the suffix.
        scale: the power of ten of the last digit.
    """
    if fmt != "BinarySI":
        return len(whole) + len(fraction) <= _MAX_DIGITS and scale >= -9
    return not fraction and 15 - len(whole) - exponent * 3 // 10 - 1 >= 0


def _precision(text: str) -> tuple[bool, int]:
    """Return whether a quantity is small (`_is_small`), and the power of ten of its last digit."""
    _, whole, fraction, suffix = _split(text)
    exponent, fmt = _interpret(suffix)
    scale = (0 if fmt == "BinarySI" else exponent) - len(fraction)
    return _is_small(fmt, whole, fraction, exponent, scale), scale


def _is_kept(fmt: Format, digits: str, number: int, scale: int) -> bool:
    """Return whether the text of a small quantity is stored as the client sent it, rather than in canonical form.

    Args:
        fmt: the format.
        digits: all digits, without the point.
        number: the number that these digits form.
        scale: the power of ten of the last digit.
    """
    if fmt == "BinarySI":
        return number & 7 != 0
    return scale % 3 == 0 and not digits.endswith("000") and digits[0] != "0"


def _large(fmt: Format, number: int, exponent: int, scale: int) -> int:
    """Return the amount in billionths of a quantity that is not small (`_is_small`), rounded up.

    An amount with a binary suffix is at most 2^63-1 units.

    Args:
        fmt: the format.
        number: the number that all digits form, without the point.
        exponent: the exponent of the suffix.
        scale: the power of ten of the last digit.
    """
    if fmt == "BinarySI":
        unit = _ten_to(-scale)
        nano = -(-(number << exponent) * NANO // unit)
        return min(nano, _MAX_INT64 * NANO)
    shift = scale + 9
    if shift >= 0:
        return number * _ten_to(shift)
    # Anything but zero is at least one billionth, however small.
    return -(-number // _ten_to(min(-shift, len(str(number)) + 1)))


def _ten_to(power: int) -> int:
    result: int = 10**power
    return result


def _canonical(nano: int, fmt: Format) -> str:
    """Return the canonical text of an amount in billionths: the shortest text that has no decimal point.

    The suffix is one of the format, but in BinarySI amounts with a fraction of a unit, and those below 1024, have a
    decimal suffix.

    Args:
        nano: the amount in billionths.
        fmt: the format of the quantity.
    """
    if nano == 0:
        return "0"
    whole, rest = divmod(nano, NANO)
    if fmt == "BinarySI" and not rest and not -1024 < whole < 1024:
        exponent = 0
        while whole % 1024 == 0 and exponent < 60:
            whole //= 1024
            exponent += 10
        return f"{whole}{_BINARY_SUFFIX[exponent]}"
    exponent, number = -9, nano
    largest = _MAX_EXPONENT * 2 if fmt == "DecimalExponent" else 18
    while number % 1000 == 0 and exponent < largest:
        number //= 1000
        exponent += 3
    if fmt == "DecimalExponent":
        return f"{number}e{exponent}" if exponent else str(number)
    return f"{number}{_DECIMAL_SUFFIX[exponent]}"
