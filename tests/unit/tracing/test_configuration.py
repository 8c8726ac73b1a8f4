"""Tests of --tracing-config-file: invalid files are rejected in the wording of kube-apiserver v1.37.1."""

from __future__ import annotations

from pathlib import Path

import pytest

from tetrapod.generic.observability.tracing.configuration import TracingConfiguration, read_configuration

HEAD = "apiVersion: apiserver.config.k8s.io/v1\nkind: TracingConfiguration\n"
READ = "failed to read tracing config: "
DECODE = f"{READ}unable to decode tracing configuration data: "
VALIDATE = "failed to validate tracing configuration: "
FIELD = "Go struct field TracingConfiguration.TracingConfiguration"


@pytest.mark.parametrize(
    ("text", "rejection"),
    [
        (f"{HEAD}foo: 1\n", f'{DECODE}strict decoding error: unknown field "foo"'),
        (
            f"{HEAD}samplingRatePerMillion: -1\n",
            f"{VALIDATE}samplingRatePerMillion: Invalid value: -1: sampling rate must be positive",
        ),
        (
            f"{HEAD}samplingRatePerMillion: 1000001\nendpoint: http://x:1\n",
            f"{VALIDATE}[samplingRatePerMillion: Invalid value: 1000001: sampling rate per million must be less than "
            'or equal to one million, endpoint: Invalid value: "http://x:1": unsupported scheme: http.  '
            "Options are none, dns, unix, or unix-abstract.  "
            "See https://github.com/grpc/grpc/blob/master/doc/naming.md]",
        ),
        (
            f"{HEAD}samplingRatePerMillion: abc\n",
            f"{DECODE}json: cannot unmarshal string into {FIELD}.samplingRatePerMillion of type int32",
        ),
        (
            f"{HEAD}samplingRatePerMillion: 3000000000\n",
            f"{DECODE}json: cannot unmarshal number 3000000000 into {FIELD}.samplingRatePerMillion of type int32",
        ),
        (f"{HEAD}endpoint: 1\n", f"{DECODE}json: cannot unmarshal number into {FIELD}.endpoint of type string"),
        (
            "kind: X\napiVersion: v1\n",
            f'{DECODE}no kind "X" is registered for version "v1" in scheme "pkg/runtime/scheme.go:111"',
        ),
        (
            f"{HEAD}endpoint: 'a b://'\n",
            (
                f'{VALIDATE}endpoint: Invalid value: "a b://": parse "a b://": first path segment in '
                "URL cannot contain colon"
            ),
        ),
    ],
)
def test_an_invalid_file_is_rejected(tmp_path: Path, text: str, rejection: str) -> None:
    file = tmp_path / "tracing.yaml"
    file.write_text(text)
    with pytest.raises(ValueError) as caught:
        read_configuration(str(file))
    assert str(caught.value) == rejection


def test_a_missing_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(ValueError) as caught:
        read_configuration(f"{tmp_path}/no")
    assert str(caught.value) == (
        f'{READ}unable to read tracing configuration from "{tmp_path}/no": open {tmp_path}/no: no '
        "such file or directory"
    )


@pytest.mark.parametrize("version", ["v1", "v1beta1", "v1alpha1"])
def test_a_valid_file_is_accepted(tmp_path: Path, version: str) -> None:
    file = tmp_path / "tracing.yaml"
    file.write_text(
        HEAD.replace("/v1", f"/{version}") + "endpoint: dns:///collector:4317\nsamplingRatePerMillion: 10\n"
    )
    assert read_configuration(str(file)) == TracingConfiguration("dns:///collector:4317", 10)
    file.write_text(HEAD)
    assert read_configuration(str(file)) == TracingConfiguration("localhost:4317", 0)
