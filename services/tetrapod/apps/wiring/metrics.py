"""The configuration of metrics from the flags: disabled and hidden ones, and the allowed values of labels.

Upstream: staging/src/k8s.io/component-base/metrics/options.go, api/v1/config.go
"""

from __future__ import annotations

import csv
import importlib
import re
from collections.abc import Sequence
from typing import Final

import orjson

import tetrapod.generic.storage.encryption.metrics  # noqa: F401 - which are there whether or not anything is encrypted
from tetrapod.apps.options.generic import MetricsFlags
from tetrapod.generic.configuration.files import read
from tetrapod.generic.configuration.version import RELEASE
from tetrapod.generic.metrics.allowed_labels import allow_labels
from tetrapod.generic.metrics.registry import disable_metrics
from tetrapod.machinery.golang.quoting import go_quote
from tetrapod.machinery.serializer import yaml
from tetrapod.machinery.serializer.errors import DecodeError

_LABEL: Final = "[a-zA-Z_][a-zA-Z0-9_]*"
_METRIC: Final = "[a-zA-Z_:][a-zA-Z0-9_:]*"


def configure_metrics(flags: MetricsFlags) -> None:
    """Apply the flags of metrics to the metrics of the process.

    Raises:
        ValueError: a flag is invalid; the text is upstream's.
    """
    _check_version(flags.show_hidden_for_version)
    for name in flags.disabled:
        if not re.fullmatch(_METRIC, name):
            text = f"must be fully qualified metric names matching {go_quote(f'^{_METRIC}$')}, got {go_quote(name)}"
            raise _invalid("disabledMetrics", list(flags.disabled), text)
    allowed = _parse_flag(flags.allow_labels)
    _check_keys(allowed)
    manifest = flags.allow_labels_manifest
    if allowed and manifest:
        both = {"allowListMapping": allowed, "allowListMappingManifest": manifest}
        raise _invalid("", both, "cannot specify both allowListMapping and allowListMappingManifest")
    if manifest:
        allowed = _of_manifest(manifest)
    disable_metrics(flags.disabled)
    allow_labels({(key.split(",")[0], key.split(",")[1]): values.split(",") for key, values in allowed.items()})
    if flags.show_hidden_for_version:
        importlib.import_module("tetrapod.generic.storage.hidden_metrics")


def _check_version(version: str) -> None:
    major, minor = RELEASE
    previous = f"{major}.{minor - 1}"
    if version not in ("", previous):
        text = f"must be omitted or have the value '{previous}'; only the previous minor version is allowed"
        raise _invalid("showHiddenMetricsForVersion", version, text)


def _parse_flag(values: Sequence[str]) -> dict[str, str]:
    """Parse the values of --allow-metric-labels, METRIC,LABEL=VALUE,…, to the allowed values by METRIC,LABEL.

    Upstream: pflag's StringToString

    Raises:
        ValueError: a value has another form.
    """
    allowed: dict[str, str] = {}
    for value in values:
        invalid = f'invalid argument {go_quote(value)} for "--allow-metric-labels" flag'
        try:
            pairs = [value.strip('"')] if value.count("=") < 2 else next(csv.reader([value], strict=True))
        except csv.Error as error:
            raise ValueError(f"{invalid}: {error}") from None
        for pair in pairs:
            key, equals, names = pair.partition("=")
            if not equals:
                raise ValueError(f"{invalid}: {pair} must be formatted as key=value")
            allowed[key] = names
    return allowed


def _of_manifest(path: str) -> dict[str, str]:
    try:
        data = read(path)
    except ValueError as error:
        raise _invalid("allowListMappingManifest", path, f"failed to read allow list manifest: {error}") from None
    try:
        allowed = yaml.decode(data).obj if data.strip() else {}
    except DecodeError as error:
        raise _invalid("allowListMappingManifest", path, f"failed to parse allow list manifest: {error}") from None
    if not isinstance(allowed, dict) or not all(isinstance(value, str) for value in allowed.values()):
        text = "failed to parse allow list manifest: it is not a map of strings"
        raise _invalid("allowListMappingManifest", path, text)
    _check_keys(allowed)
    return allowed


def _check_keys(allowed: dict[str, str]) -> None:
    if not all(re.fullmatch(f"{_METRIC},{_LABEL}", key) for key in allowed):
        text = (
            f"must have keys with format `metricName,labelName` where metricName matches {go_quote(_METRIC)} and "
            f"labelName matches {go_quote(_LABEL)}"
        )
        raise _invalid("allowListMapping", allowed, text)


def _invalid(field: str, value: object, text: str) -> ValueError:
    """Return (not raise) upstream's error for an invalid value of MetricsConfiguration."""
    try:
        shown = orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()
    except orjson.JSONEncodeError:  # bytes of the command line that are not UTF-8
        shown = ascii(value)
    return ValueError(f"{'.'.join(filter(None, ('metrics', field)))}: Invalid value: {shown}: {text}")
