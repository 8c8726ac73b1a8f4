"""Validation of names, keys, ports and similar short strings.

Every check returns upstream's error messages for the value, and an empty list if the value is valid. Strategies and the
checks of metadata, selectors and schemas call these functions. Addresses are in `addresses.py`.

Upstream: k8s.io/apimachinery/pkg/util/validation/validation.go, pkg/api/validate/content (whose messages about lengths
count bytes) and pkg/api/validation/generic.go.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, TypeAlias

NameCheck: TypeAlias = Callable[[str, bool], list[str]]
"""A function that returns the error messages for a name, given whether it is only a prefix (a generateName).

A prefix may end in characters in which a name must not end, such as a dash.
"""

DNS1123_LABEL_MAX: Final = 63
DNS1123_SUBDOMAIN_MAX: Final = 253
DNS1035_LABEL_MAX: Final = 63
LABEL_VALUE_MAX: Final = 63
_LABEL_KEY_MAX: Final = 63

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_LABEL_UNDERSCORE = "_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_SUBDOMAIN_UNDERSCORE = rf"{_LABEL_UNDERSCORE}(\.{_LABEL_UNDERSCORE})*"
_DNS1035 = "[a-z]([-a-z0-9]*[a-z0-9])?"
_WILDCARD = r"\*\." + _SUBDOMAIN
_LABEL_KEY = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_LABEL_VALUE = f"({_LABEL_KEY})?"
_C_IDENTIFIER = "[A-Za-z_][A-Za-z0-9_]*"
_PERCENT = "[0-9]+%"
_HEADER = "[-A-Za-z0-9]+"
_CONFIG_KEY = "[-._a-zA-Z0-9]+"
_HTTP_PATH = r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+"

_label_re = re.compile(_LABEL).fullmatch
_subdomain_re = re.compile(
    rf"{_LABEL}(?:\.{_LABEL})*+"
).fullmatch  # `_SUBDOMAIN` without backtracking, which takes memory for long names
_subdomain_underscore_re = re.compile(_SUBDOMAIN_UNDERSCORE).fullmatch
_dns1035_re = re.compile(_DNS1035).fullmatch
_wildcard_re = re.compile(_WILDCARD).fullmatch
_label_key_re = re.compile(_LABEL_KEY).fullmatch
_label_value_re = re.compile(_LABEL_VALUE).fullmatch
_c_identifier_re = re.compile(_C_IDENTIFIER).fullmatch
_percent_re = re.compile(_PERCENT).fullmatch
_header_re = re.compile(_HEADER).fullmatch
_config_key_re = re.compile(_CONFIG_KEY).fullmatch
_http_path_re = re.compile(_HTTP_PATH).fullmatch
_port_name_re = re.compile("[-a-z0-9]+").fullmatch
_letter_re = re.compile("[a-z]").search

_LABEL_TEXT = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', "
    "and must start and end with an alphanumeric character"
)
_SUBDOMAIN_TEXT = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', "
    "and must start and end with an alphanumeric character"
)
_SUBDOMAIN_CASELESS_TEXT = (
    "an RFC 1123 subdomain must consist of alphanumeric characters, '-' or '.', and must start and end with an "
    "alphanumeric character"
)
_SUBDOMAIN_UNDERSCORE_TEXT = _SUBDOMAIN_TEXT.replace("characters, '-'", "characters, '_', '-'")
_DNS1035_TEXT = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', "
    "start with an alphabetic character, and end with an alphanumeric character"
)
_WILDCARD_TEXT = (
    "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, "
    "which must consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character"
)
_LABEL_KEY_TEXT = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
)
_LABEL_VALUE_TEXT = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', "
    "and must start and end with an alphanumeric character"
)
_C_IDENTIFIER_TEXT = (
    "a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric characters "
    "or '_'"
)
_ENV_VAR_RELAXED_TEXT = (
    "a valid environment variable name must consist only of printable ASCII characters other than '='"
)


def max_length_text(limit: int) -> str:
    """Return the error message for a text that is longer than `limit`. The message names characters as the unit."""
    return f"must be no more than {limit} characters"


def max_bytes_text(limit: int) -> str:
    """Return the error message for a text that is longer than `limit`. The message names bytes as the unit."""
    return f"must be no more than {limit} bytes"


def range_text(low: int, high: int) -> str:
    """Return the error message for a number outside `low` to `high`."""
    return f"must be between {low} and {high}, inclusive"


def regex_text(message: str, pattern: str, *examples: str) -> str:
    """Return the error message for a text that does not match a pattern: `message`, the examples and the pattern.

    The odd comma before `or` between examples is upstream's.
    """
    if not examples:
        return f"{message} (regex used for validation is '{pattern}')"
    listed = " or ".join(f"'{example}', " for example in examples)
    return f"{message} (e.g. {listed}regex used for validation is '{pattern}')"


def _size(value: str) -> int:
    """Return the size of a text in bytes of UTF-8."""
    return len(value) if value.isascii() else len(value.encode("utf-8", "surrogatepass"))


def is_dns1123_label(value: str) -> list[str]:
    """Return the error messages for a text that is not a DNS-1123 label, or [] if it is one."""
    errors = [max_length_text(DNS1123_LABEL_MAX)] if _size(value) > DNS1123_LABEL_MAX else []
    if not _label_re(value):
        errors.append(
            "must not contain dots" if _subdomain_re(value) else regex_text(_LABEL_TEXT, _LABEL, "my-name", "123-abc")
        )
    return errors


def is_dns1123_subdomain(value: str) -> list[str]:
    """Return the error messages for a text that is not a DNS-1123 subdomain, or [] if it is one."""
    errors = [max_length_text(DNS1123_SUBDOMAIN_MAX)] if _size(value) > DNS1123_SUBDOMAIN_MAX else []
    if not _subdomain_re(value):
        errors.append(regex_text(_SUBDOMAIN_TEXT, _SUBDOMAIN, "example.com"))
    return errors


def is_short_name(value: str) -> list[str]:
    """Return the error messages for a text that does not have the schema format `k8s-short-name`, or [] if it has.

    The format is a DNS-1123 label. Unlike that of `is_dns1123_label`, the message about the length counts bytes.
    """
    return _in_bytes(is_dns1123_label(value), DNS1123_LABEL_MAX)


def is_long_name(value: str) -> list[str]:
    """Return the error messages for a text that does not have the schema format `k8s-long-name`, or [] if it has.

    The format is a DNS-1123 subdomain. Unlike that of `is_dns1123_subdomain`, the message about the length counts
    bytes.
    """
    return _in_bytes(is_dns1123_subdomain(value), DNS1123_SUBDOMAIN_MAX)


def is_long_name_caseless(value: str) -> list[str]:
    """Return the error messages for a text that is not a DNS-1123 subdomain in upper or lower case, or [] if it is one.

    Unlike that of `is_dns1123_subdomain_caseless`, the message about the length counts bytes.
    """
    return _in_bytes(is_dns1123_subdomain_caseless(value), DNS1123_SUBDOMAIN_MAX)


def _in_bytes(errors: list[str], limit: int) -> list[str]:
    return [max_bytes_text(limit) if text == max_length_text(limit) else text for text in errors]


def is_dns1123_subdomain_caseless(value: str) -> list[str]:
    """Return the error messages for a text that is not a DNS-1123 subdomain in upper or lower case, or [] if it is one.

    As upstream, the message shows the pattern without upper-case letters.
    """
    errors = [max_length_text(DNS1123_SUBDOMAIN_MAX)] if _size(value) > DNS1123_SUBDOMAIN_MAX else []
    if not _subdomain_re(value.lower()):
        errors.append(regex_text(_SUBDOMAIN_CASELESS_TEXT, _SUBDOMAIN, "Example.com"))
    return errors


def is_dns1123_subdomain_with_underscore(value: str) -> list[str]:
    """Return the error messages for a text that is not a DNS-1123 subdomain in which underscores are allowed."""
    errors = [max_length_text(DNS1123_SUBDOMAIN_MAX)] if _size(value) > DNS1123_SUBDOMAIN_MAX else []
    if not _subdomain_underscore_re(value):
        errors.append(regex_text(_SUBDOMAIN_UNDERSCORE_TEXT, _SUBDOMAIN_UNDERSCORE, "example.com"))
    return errors


def is_dns1035_label(value: str) -> list[str]:
    """Return the error messages for a text that is not a DNS-1035 label, or [] if it is one."""
    errors = [max_length_text(DNS1035_LABEL_MAX)] if _size(value) > DNS1035_LABEL_MAX else []
    if not _dns1035_re(value):
        errors.append(regex_text(_DNS1035_TEXT, _DNS1035, "my-name", "abc-123"))
    return errors


def is_wildcard_dns1123_subdomain(value: str) -> list[str]:
    """Return the error messages for a text that is not a wildcard such as `*.example.com`, or [] if it is one."""
    errors = [max_length_text(DNS1123_SUBDOMAIN_MAX)] if _size(value) > DNS1123_SUBDOMAIN_MAX else []
    if not _wildcard_re(value):
        errors.append(regex_text(_WILDCARD_TEXT, _WILDCARD, "*.example.com"))
    return errors


def is_qualified_name(value: str) -> list[str]:
    """Return the error messages for a text that is not a label key, or [] if it is one.

    A label key is a name, with an optional prefix of a DNS subdomain and a slash.
    """
    prefix, slash, name = value.partition("/")
    if not slash:
        prefix, name = "", prefix
    elif "/" in name:
        pattern = regex_text(_LABEL_KEY_TEXT, _LABEL_KEY, "MyName", "my.name", "123-abc")
        return [
            f"a valid label key {pattern} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        ]
    errors = []
    if slash:
        errors += [f"prefix part {text}" for text in _prefix_errors(prefix)]
    if not name:
        errors.append("name part must be non-empty")
    elif _size(name) > _LABEL_KEY_MAX:
        errors.append(f"name part {max_bytes_text(_LABEL_KEY_MAX)}")
    if not _label_key_re(name):
        errors.append("name part " + regex_text(_LABEL_KEY_TEXT, _LABEL_KEY, "MyName", "my.name", "123-abc"))
    return errors


def _prefix_errors(prefix: str) -> list[str]:
    if not prefix:
        return ["must be non-empty"]
    errors = [max_bytes_text(DNS1123_SUBDOMAIN_MAX)] if _size(prefix) > DNS1123_SUBDOMAIN_MAX else []
    if not _subdomain_re(prefix):
        errors.append(regex_text(_SUBDOMAIN_TEXT, _SUBDOMAIN, "example.com"))
    return errors


def is_valid_label_value(value: str) -> list[str]:
    """Return the error messages for a text that is not a label value, or [] if it is one. The empty string is one."""
    errors = [max_bytes_text(LABEL_VALUE_MAX)] if _size(value) > LABEL_VALUE_MAX else []
    if not _label_value_re(value):
        errors.append(regex_text(_LABEL_VALUE_TEXT, _LABEL_VALUE, "MyValue", "my_value", "12345"))
    return errors


def is_c_identifier(value: str) -> list[str]:
    """Return the error message for a text that is not a C identifier, or [] if it is one."""
    if _c_identifier_re(value):
        return []
    return [regex_text(_C_IDENTIFIER_TEXT, _C_IDENTIFIER, "my_name", "MY_NAME", "MyName")]


def is_in_range(value: int, low: int, high: int) -> list[str]:
    """Return the error message for a number outside `low` to `high`, both included, or [] if it is within."""
    return [] if low <= value <= high else [range_text(low, high)]


def is_valid_port_number(port: int) -> list[str]:
    """Return the error message for a number outside 1 to 65535, or [] if it is a port."""
    return is_in_range(port, 1, 65535)


def is_valid_user_id(uid: int) -> list[str]:
    """Return the error message for a number that is not the ID of a user or group (0 to 2^31-1), or [] if it is one."""
    return is_in_range(uid, 0, 2**31 - 1)


def is_valid_port_name(port: str) -> list[str]:
    """Return the error messages for a text that is not a port name (an IANA service name), or [] if it is one."""
    errors = []
    if _size(port) > 15:
        errors.append(max_length_text(15))
    if not _port_name_re(port):
        errors.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not _letter_re(port):
        errors.append("must contain at least one letter (a-z)")
    if "--" in port:
        errors.append("must not contain consecutive hyphens")
    if port.startswith("-") or port.endswith("-"):
        errors.append("must not begin or end with a hyphen")
    return errors


def is_valid_percent(value: str) -> list[str]:
    """Return the error message for a text that is not a percentage such as `25%`, or [] if it is one."""
    if _percent_re(value):
        return []
    return [
        regex_text("a valid percent string must be a numeric string followed by an ending '%'", _PERCENT, "1%", "93%")
    ]


def is_http_header_name(value: str) -> list[str]:
    """Return the error message for a text that is not the name of an HTTP header, or [] if it is one."""
    if _header_re(value):
        return []
    return [regex_text("a valid HTTP header must consist of alphanumeric characters or '-'", _HEADER, "X-Header-Name")]


def is_relaxed_env_var_name(value: str) -> list[str]:
    """Return the error messages for a text that is not the name of an environment variable, or [] if it is one.

    Under upstream's relaxed rules, all printable ASCII characters except `=` are valid.
    """
    errors = [] if value else ["environment variable name must be non-empty"]
    if any(not " " <= char <= "~" or char == "=" for char in value):
        errors.append(_ENV_VAR_RELAXED_TEXT)
    return errors


def is_config_map_key(value: str) -> list[str]:
    """Return the error messages for a text that is not a key of a ConfigMap or Secret, or [] if it is one."""
    if len(value) <= DNS1123_SUBDOMAIN_MAX and _config_key_re(value) and not value.startswith("."):
        return []
    errors = [max_length_text(DNS1123_SUBDOMAIN_MAX)] if _size(value) > DNS1123_SUBDOMAIN_MAX else []
    if not _config_key_re(value):
        text = "a valid config key must consist of alphanumeric characters, '-', '_' or '.'"
        errors.append(regex_text(text, _CONFIG_KEY, "key.name", "KEY_NAME", "key-name"))
    return errors + _dot_dot_errors(value)


def _dot_dot_errors(value: str) -> list[str]:
    if value in (".", ".."):
        return [f"must not be '{value}'"]
    return ["must not start with '..'"] if value.startswith("..") else []


def is_fully_qualified_name(value: str) -> list[str]:
    """Return an error message for a text that is not a DNS subdomain of at least three segments, or [] if it is one.

    The caller reports an empty text as `Required value`.
    """
    if errors := is_dns1123_subdomain(value):
        return [",".join(errors)]
    if value.count(".") < 2:
        return ["should be a domain with at least three segments separated by dots"]
    return []


def is_fully_qualified_domain_name(value: str) -> list[str]:
    """Return an error message for a text that is not a DNS subdomain of at least two segments, or [] if it is one.

    Each segment must be a DNS-1123 label. A trailing dot is allowed.
    """
    value = value.removesuffix(".")
    if errors := is_dns1123_subdomain(value):
        return [",".join(errors)]
    if "." not in value:
        return ["should be a domain with at least two segments separated by dots"]
    for label in value.split("."):
        if errors := is_dns1123_label(label):
            return [",".join(errors)]
    return []


def is_http_path(value: str) -> list[str]:
    """Return the error message for a text with characters that the path of a URL cannot have, or [] for other texts."""
    return [] if _http_path_re(value) else [regex_text("Invalid path", _HTTP_PATH)]


def is_path_segment_name(name: str) -> list[str]:
    """Return the error messages for a name that cannot be a segment of a URL's path, or [] if it can.

    Segments may not be `.` or `..`, nor contain `/` or `%`. This is the only rule for names of RBAC kinds, and applies
    to every name in a request's path.
    """
    if name in (".", ".."):
        return [f"may not be '{name}'"]
    return [f"may not contain '{bad}'" for bad in ("/", "%") if bad in name]


def is_path_segment_prefix(name: str) -> list[str]:
    """Return the error messages for a generateName that contains `/` or `%`, or [] for others."""
    return [f"may not contain '{bad}'" for bad in ("/", "%") if bad in name]


def _without_trailing_dash(name: str) -> str:
    return name[:-2] + "a" if len(name) > 1 and name.endswith("-") else name


def name_is_dns_subdomain(name: str, prefix: bool) -> list[str]:
    """Return the error messages for a name that is not a DNS-1123 subdomain, or [] if it is one; a `NameCheck`.

    With `prefix`, the name is a generateName, which may end in a dash.
    """
    return is_dns1123_subdomain(_without_trailing_dash(name) if prefix else name)


def name_is_dns_label(name: str, prefix: bool) -> list[str]:
    """Return the error messages for a name that is not a DNS-1123 label, or [] if it is one; a `NameCheck`.

    With `prefix`, the name is a generateName, which may end in a dash.
    """
    return is_dns1123_label(_without_trailing_dash(name) if prefix else name)


def name_is_dns1035_label(name: str, prefix: bool) -> list[str]:
    """Return the error messages for a name that is not a DNS-1035 label, or [] if it is one; a `NameCheck`.

    With `prefix`, the name is a generateName, which may end in a dash.
    """
    return is_dns1035_label(_without_trailing_dash(name) if prefix else name)


def name_is_path_segment(name: str, prefix: bool) -> list[str]:
    """Return the error messages for a name that cannot be a segment of a URL's path, or [] if it can; a `NameCheck`.

    With `prefix`, the name is a generateName.
    """
    return is_path_segment_prefix(name) if prefix else is_path_segment_name(name)


validate_namespace_name: NameCheck = name_is_dns_label
