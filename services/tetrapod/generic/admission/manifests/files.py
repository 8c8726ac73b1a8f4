"""Reads the YAML and JSON files of a directory, document by document.

Upstream: staging/src/k8s.io/apiserver/pkg/admission/plugin/manifest/loader.go,
staging/src/k8s.io/apimachinery/pkg/util/yaml/decoder.go, YAMLReader
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from typing import Final, NamedTuple

from tetrapod.generic.configuration.files import file_error_text, read
from tetrapod.machinery.golang.quoting import go_quote

_EXTENSIONS: Final = (".yaml", ".yml", ".json")
_SEPARATOR: Final = b"---"


class Document(NamedTuple):
    """One document of a manifest file.

    Attributes:
        path: the path of the file.
        data: the text of the document, without surrounding white space.
    """

    path: str
    data: bytes


def read_documents(directory: str) -> tuple[list[Document], str]:
    """Return the documents of the manifest files in a directory, by file name, and a hash of their contents.

    Manifest files end in .yaml, .yml or .json. Empty files, other files and subdirectories are ignored.

    Returns:
        The documents, and the hash as `sha256:…`. The hash is "" if the directory has no manifest files, or all of
            them are empty.

    Raises:
        ValueError: the directory or a file cannot be read, or a separator is invalid; with upstream's text.
    """
    documents: list[Document] = []
    digest, empty = hashlib.sha256(), True
    for path in _manifest_files(directory):
        try:
            data = read(path)
        except ValueError as error:
            raise ValueError(f"failed to read file {go_quote(path)}: {error}") from None
        if not data:
            continue
        empty = False
        digest.update(data + b"\0")
        try:
            documents += [Document(path, document) for document in _split(data)]
        except ValueError as error:
            raise ValueError(f"failed to split YAML documents in file {go_quote(path)}: {error}") from None
    return documents, "" if empty else f"sha256:{digest.hexdigest()}"


def _manifest_files(directory: str) -> list[str]:
    try:
        with os.scandir(directory) as entries:
            names = [entry.name for entry in entries if not entry.is_dir(follow_symlinks=False)]
    except OSError as error:
        text = file_error_text("open", directory, error)
        raise ValueError(f"failed to read manifest directory {go_quote(directory)}: {text}") from None
    manifests = [name for name in names if name.lower().endswith(_EXTENSIONS)]
    return [os.path.join(directory, name) for name in sorted(manifests, key=os.fsencode)]


def _split(data: bytes) -> Iterator[bytes]:
    """Yield the documents, which lines that begin with `---` separate; empty ones are skipped.

    As upstream, a separator without text before it is a part of the document that follows.

    Raises:
        ValueError: text other than a comment follows a separator.
    """
    lines: list[bytes] = []
    for line in data.split(b"\n"):
        if line.startswith(_SEPARATOR):
            rest = line[len(_SEPARATOR) :].strip()
            if rest and not rest.startswith(b"#"):
                raise ValueError(f"invalid Yaml document separator: {rest.decode('utf-8', 'replace')}")
            if lines:
                yield from _document(lines)
                lines = []
                continue
        lines.append(line.removesuffix(b"\r"))
    yield from _document(lines)


def _document(lines: list[bytes]) -> Iterator[bytes]:
    if text := b"\n".join(lines).strip():
        yield text
