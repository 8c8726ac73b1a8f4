"""TLS of the listener, as the flags configure it. Invalid files and names are reported before the server listens.

Upstream: k8s.io/apiserver/pkg/server/options/serving.go, SecureServingOptions;
component-base/cli/flag/namedcertkey_flag.go
"""

from __future__ import annotations

import ssl
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from tetrapod.apps.options.serving import ServingFlags
from tetrapod.generic.configuration.files import file_error_text
from tetrapod.generic.http.cipher_suites import openssl_ciphers, tls_version
from tetrapod.generic.http.key_exchange import openssl_groups
from tetrapod.generic.http.tls import CertificatePair, ServingTLS
from tetrapod.machinery.golang.quoting import go_quote


def serving_tls(
    flags: ServingFlags, pair: CertificatePair, client_cas: Sequence[str], unnamed_cas: Sequence[str] = ()
) -> ServingTLS:
    """Return the TLS configuration of the listener.

    Args:
        flags: the flags of secure serving.
        pair: the default certificate and key.
        client_cas: the paths of CA bundles, which the server names to clients that may present a certificate.
        unnamed_cas: the paths of CA bundles that it accepts without naming them.

    Raises:
        ValueError: a flag or a file is invalid; the text is upstream's, if it has one.
    """
    if not 0 <= flags.secure_port < 65536:
        text = "must be between 1 and 65535, inclusive. It cannot be turned off with 0"
        raise ValueError(f"--secure-port {flags.secure_port} {text}")
    version = tls_version(flags.tls_min_version)
    ciphers = openssl_ciphers(flags.tls_cipher_suites)
    if flags.tls_cipher_suites and not ciphers:
        version = ssl.TLSVersion.TLSv1_3
    if version < ssl.TLSVersion.TLSv1_2:  # OpenSSL's higher security levels exclude MD5 and SHA-1
        ciphers = f"{ciphers or 'DEFAULT'}:@SECLEVEL=0"
    check_pair(pair, "tls-cert-file", "tls-private-key-file")
    named = [named_pair(value) for value in flags.tls_sni_cert_key]
    return ServingTLS(
        [pair, *named],
        client_cas,
        unnamed_cas,
        version,
        ciphers,
        openssl_groups(flags.tls_curve_preferences),
        http2=not flags.disable_http2_serving,
        max_streams=flags.http2_max_streams_per_connection,
    )


def named_pair(value: str) -> CertificatePair:
    """Return the certificate in a value of --tls-sni-cert-key, `CERT,KEY` or `CERT,KEY:NAME,NAME`.

    Without names it is used for those that the certificate contains.

    Raises:
        ValueError: the value or a file is invalid; the text is upstream's.
    """
    prefix = f'invalid argument {go_quote(value)} for "--tls-sni-cert-key" flag: '
    files, colon, names = value.partition(":")
    if colon and not names.strip():
        raise ValueError(f"{prefix}empty names list is not allowed")
    certificate, comma, key = files.partition(",")
    if not comma or "," in key:
        raise ValueError(f"{prefix}expected comma separated certificate and key file paths")
    pair = CertificatePair(certificate.strip(), key.strip())
    check_pair(pair, "tls-sni-cert-key", "tls-sni-cert-key")
    if colon:
        return replace(pair, names=tuple(name.strip() for name in names.split(",")))
    from tetrapod.generic.certificates.authority import hosts

    return replace(pair, names=tuple(hosts(Path(pair.certificate).read_bytes())))


def check_pair(pair: CertificatePair, certificate_flag: str, key_flag: str) -> None:
    """Check that the files of a certificate and its key can be used together. The flags are named in errors.

    Raises:
        ValueError: a file cannot be read, does not contain a certificate or key, or the key belongs to another
            certificate.
    """
    for path, flag in ((pair.certificate, certificate_flag), (pair.key, key_flag)):
        try:
            Path(path).read_bytes()
        except OSError as error:
            raise ValueError(f"--{flag}: {file_error_text('open', path, error)}") from None
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(pair.certificate, pair.key, password=_no_password)
    except ssl.SSLError as error:
        raise ValueError(f"--{certificate_flag}: {pair.certificate} with {pair.key}: {_reason(error)}") from None
    except ValueError as error:
        raise ValueError(f"--{key_flag}: {pair.key}: {error}") from None


def _no_password() -> str:
    raise ValueError("the key is encrypted: give one without a password")


def _reason(error: ssl.SSLError) -> str:
    if error.reason == "KEY_VALUES_MISMATCH":
        return "tls: private key does not match public key"
    return f"no certificate and key in PEM: {error.reason or error}"
