"""Tests of links in proxied pages. The expectations are results of upstream's proxy."""

from __future__ import annotations

import gzip
import tracemalloc
import zlib

import pytest

from tetrapod.core.subresources.links import MAX_PAGE, Links

LINKS = Links("/api/v1/namespaces/n/pods/p:1/proxy", "10.1.2.3:1", "front:6443")
P = "/api/v1/namespaces/n/pods/p:1/proxy"


@pytest.mark.parametrize(
    ("link", "rewritten"),
    [
        ("/login?x=1", f"{P}/login?x=1"),
        ("/x/", f"{P}/x/"),
        ("/", f"{P}/"),
        ("rel/x", "rel/x"),
        ("", ""),
        ("http://other/x", "http://other/x"),
        ("http://10.1.2.3:1/y#f", f"{P}/y#f"),
        ("https://front:6443/y", f"https://front:6443{P}/y"),
        (f"{P}/already", f"{P}/already"),
        ("http://%zz/", "http://%zz/"),
        ("http://[::1", "http://[::1"),
    ],
)
def test_links_within_the_backend_are_rewritten_to_the_proxy(link: str, rewritten: str) -> None:
    assert LINKS.rewrite(link) == rewritten


@pytest.mark.parametrize(
    ("page", "rewritten"),
    [
        ("<A HREF=/abs>x</A>", f'<a href="{P}/abs">x</A>'),
        ("<a href=/abs/><a href=x />", f'<a href="{P}/abs/"><a href="x"/>'),
        ("<link rel=stylesheet href='/a.css'>", f'<link rel="stylesheet" href="{P}/a.css">'),
        (
            '<script src="/x.js?a=1&amp;b=2">if (a<b) "<a href=/n>";</script>',
            f'<script src="{P}/x.js?a=1&amp;b=2">if (a<b) "<a href=/n>";</script>',
        ),
        (
            "<img src=//h/i.png alt='q\"q'><br/><input disabled>",
            '<img src="//h/i.png" alt="q&#34;q"><br/><input disabled="">',
        ),
        ('<!DOCTYPE html><!-- <a href="/no"> --></p>', '<!DOCTYPE html><!-- <a href="/no"> --></p>'),
        ("a < b and <", "a < b and <"),
        ("<p title='a", "<p title='a"),
    ],
)
def test_pages_are_rewritten_tag_by_tag(page: str, rewritten: str) -> None:
    assert LINKS.page(page.encode(), "") == rewritten.encode()
    assert gzip.decompress(LINKS.page(gzip.compress(page.encode()), "gzip") or b"") == rewritten.encode()


def test_bytes_that_are_no_text_and_codes_that_are_unknown() -> None:
    assert LINKS.page(b"\xff<b>\xfe", "") == b"\xff<b>\xfe"
    assert LINKS.page(b"x", "br") is None
    with pytest.raises(ValueError, match="gzip"):
        LINKS.page(b"x", "gzip")


def test_a_hostile_page_takes_no_time() -> None:
    for page in (b"<a " * 20_000, b'<a href="' * 20_000, b"<" * 100_000, b"<!--" * 30_000, b"<a x='" + b"=" * 100_000):
        assert LINKS.page(page, "") is not None


def _encoded(page: bytes, encoding: str) -> bytes:
    match encoding:
        case "gzip":
            return gzip.compress(page)
        case "deflate":
            return zlib.compress(page, wbits=-15)
    return page


@pytest.mark.parametrize("encoding", ["", "gzip", "deflate"])
def test_pages_longer_than_the_limit_are_not_rewritten(encoding: str) -> None:
    assert LINKS.page(_encoded(b" " * MAX_PAGE, encoding), encoding) is not None
    assert LINKS.page(_encoded(b" " * (MAX_PAGE + 1), encoding), encoding) is None


def test_truncated_pages_are_rejected() -> None:
    for encoding in ("gzip", "deflate"):
        with pytest.raises(ValueError, match=r"end|incomplete"):
            LINKS.page(_encoded(b"x" * 100, encoding)[:-3], encoding)


def test_a_compressed_page_that_explodes_takes_little_memory() -> None:
    bomb = gzip.compress(b"\0" * (64 << 20))
    tracemalloc.start()
    try:
        assert LINKS.page(bomb, "gzip") is None
        assert tracemalloc.get_traced_memory()[1] < 4 * MAX_PAGE
    finally:
        tracemalloc.stop()
