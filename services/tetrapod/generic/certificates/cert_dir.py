"""`publish_serving`: the serving certificate in --cert-dir, where clients find it as in kube-apiserver.

Upstream: staging/src/k8s.io/apiserver/pkg/server/options/serving.go, MaybeDefaultWithSelfSignedCerts
"""

from __future__ import annotations

from pathlib import Path

from tetrapod.generic.certificates.pki import PRIVATE, PUBLIC, Pki, write_file


def publish_serving(pki: Pki, directory: str) -> tuple[Path, Path]:
    """Return the paths of `apiserver.crt` and `apiserver.key` in a directory, after writing these files if necessary.

    If both files are missing, the server's own certificate, followed by the CA certificate, and its key are written.
    Files that this function wrote earlier are replaced once the server's certificate has been renewed. Files of the
    user are kept.

    Args:
        pki: the server's own certificates.
        directory: the value of --cert-dir.

    Raises:
        ValueError: one of the files is missing, and the other is not the server's own. The text is upstream's.
        OSError: the files cannot be read or written.
    """
    target = Path(directory, "apiserver.crt"), Path(directory, "apiserver.key")
    certificate, key = pki.serving
    authority = pki.ca.read_bytes()
    chain = certificate.read_bytes() + authority
    if all(file.is_file() for file in target):
        present = target[0].read_bytes()
        if present == chain or not present.endswith(authority):
            return target
    own = (chain, key.read_bytes())
    for file, content, other in zip(target, own, reversed(target), strict=True):
        if file.is_file() and not other.is_file() and file.read_bytes() != content:
            raise ValueError(f"error reading {other}, certificate and key must be supplied as a pair")
    target[0].parent.mkdir(parents=True, exist_ok=True)
    write_file(target[1], own[1], PRIVATE)
    write_file(target[0], chain, PUBLIC)
    return target
