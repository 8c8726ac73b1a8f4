"""The file of `--tracing-config-file`: a TracingConfiguration, decoded strictly, with upstream's error texts.

Upstream: k8s.io/apiserver/pkg/server/options/tracing.go, k8s.io/component-base/tracing/api/v1/config.go.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from tetrapod.generic.configuration.files import read
from tetrapod.generic.configuration.loading import Kinds, load
from tetrapod.generic.configuration.schemas import POINTER, integer, kind, pointer, string
from tetrapod.machinery.field import FieldError, aggregate, invalid
from tetrapod.machinery.golang.quoting import go_quote

DEFAULT_ENDPOINT: Final = "localhost:4317"
_GROUP: Final = "apiserver.config.k8s.io"
_KIND: Final = "TracingConfiguration"
_MILLION: Final = 1_000_000
_NAMING: Final = "https://github.com/grpc/grpc/blob/master/doc/naming.md"


@dataclass(frozen=True, slots=True)
class TracingConfiguration:
    """The configuration of the export of traces.

    Attributes:
        endpoint: the address of the collector as a gRPC target.
        sampling_rate_per_million: how many of a million requests are sampled.
    """

    endpoint: str = DEFAULT_ENDPOINT
    sampling_rate_per_million: int = 0


def read_configuration(path: str) -> TracingConfiguration:
    """Return the configuration in the file at `path`, with defaults for missing fields.

    Raises:
        ValueError: the file cannot be read or is invalid; the text is upstream's.
    """
    try:
        data = read(path)
    except ValueError as error:
        raise ValueError(
            f"failed to read tracing config: unable to read tracing configuration from {go_quote(path)}: {error}"
        ) from None
    try:
        obj = load(data, _kinds())
    except ValueError as error:
        # Go's struct embeds another one, which doubles the name
        message = str(error).replace(f"struct field {_KIND}.", f"struct field {_KIND}.{_KIND}.")
        raise ValueError(
            f"failed to read tracing config: unable to decode tracing configuration data: {message}"
        ) from None
    rate, endpoint = obj.get("samplingRatePerMillion"), obj.get("endpoint")
    errors = _rate_errors(rate) if rate is not None else []
    if endpoint is not None:
        errors += _endpoint_errors(endpoint)
    if errors:
        raise ValueError(f"failed to validate tracing configuration: {aggregate(errors)}")
    return TracingConfiguration(endpoint or DEFAULT_ENDPOINT, rate or 0)


def _kinds() -> Kinds:
    fields = {"endpoint": string(POINTER), "samplingRatePerMillion": pointer(integer("int32"))}
    shape = kind(f"v1.{_KIND}", **fields)
    return {(f"{_GROUP}/{version}", _KIND): shape for version in ("v1", "v1beta1", "v1alpha1")}


def _rate_errors(rate: int) -> list[FieldError]:
    if rate < 0:
        return [invalid("samplingRatePerMillion", rate, "sampling rate must be positive")]
    if rate > _MILLION:
        return [
            invalid(
                "samplingRatePerMillion", rate, "sampling rate per million must be less than or equal to one million"
            )
        ]
    return []


def _endpoint_errors(endpoint: str) -> list[FieldError]:
    target = endpoint if "//" in endpoint else f"dns://{endpoint}"
    try:
        scheme = urlsplit(target).scheme
    except ValueError as error:
        return [invalid("endpoint", target, f"parse {go_quote(target)}: {error}")]
    if scheme in ("dns", "unix", "unix-abstract"):
        return []
    if not scheme:
        return [
            invalid("endpoint", target, f"parse {go_quote(target)}: first path segment in URL cannot contain colon")
        ]
    text = f"unsupported scheme: {scheme}.  Options are none, dns, unix, or unix-abstract.  See {_NAMING}"
    return [invalid("endpoint", target, text)]
