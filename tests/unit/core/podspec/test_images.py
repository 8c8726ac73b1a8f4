"""Checks that the tag of an image decides whether the image is always pulled."""

from __future__ import annotations

import pytest

from tetrapod.core.podspec import images
from tetrapod.core.podspec.images import tag_of

DIGEST = "sha256:" + "0" * 64


@pytest.mark.parametrize(
    ("image", "tag"),
    [
        ("nginx", "latest"),
        ("nginx:1.27", "1.27"),
        ("localhost/nginx", "latest"),
        ("localhost:5000/a/b", "latest"),
        ("registry.example:5000/a:v1", "v1"),
        ("[fd00::1]:5000/a:v1", "v1"),
        ("index.docker.io/nginx", "latest"),
        ("Upper/nginx", "latest"),
        (f"nginx@{DIGEST}", ""),
        (f"nginx:latest@{DIGEST}", "latest"),
    ],
)
def test_a_name_means_a_tag(image: str, tag: str) -> None:
    assert tag_of(image) == tag


@pytest.mark.parametrize(
    "image",
    [
        "",
        "UPPER",
        "a b",
        "-x",
        "nginx:",
        "a//b",
        "0" * 64,
        "a/" + "b" * 256,
        "a:" + "t" * 129,
        "a@sha256:" + "0" * 40,
        "é",
    ],
)
def test_an_invalid_image_name_has_no_tag(image: str) -> None:
    assert tag_of(image) == ""


def test_long_images_are_not_matched(monkeypatch: pytest.MonkeyPatch) -> None:
    matched: list[int] = []
    monkeypatch.setattr(images, "_reference", lambda text: matched.append(len(text)))
    assert tag_of("a/" * 100_000 + "b") == ""
    assert tag_of("a." * 100_000 + "b/c") == ""
    assert not matched
