"""Tests of the splitting of received bytes into HTTP/2 frames."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tetrapod.generic.http2 import frames
from tetrapod.generic.http2.frame_reader import Frame, FrameReader

FRAMES = st.lists(
    st.tuples(st.sampled_from([frames.DATA, frames.PING, frames.SETTINGS, 99]), st.binary(max_size=50)), max_size=20
)


def frames_of(reader: FrameReader) -> list[Frame]:
    found = []
    while (frame := reader.next()) is not None:
        found.append(frame)
    return found


@given(FRAMES, st.lists(st.integers(1, 30), min_size=1))
def test_frames_do_not_depend_on_the_pieces_in_which_they_arrive(
    sent: list[tuple[int, bytes]], sizes: list[int]
) -> None:
    data = b"".join(frames.frame(kind, 0, 1, payload) for kind, payload in sent)
    reader, received = FrameReader(1 << 19), []
    at = number = 0
    while at < len(data):
        size = sizes[number % len(sizes)]
        reader.feed(data[at : at + size])
        received += frames_of(reader)
        at, number = at + size, number + 1
    assert received == [Frame(kind, 0, 1, payload) for kind, payload in sent]
    assert not reader.in_head


def test_a_header_block_is_joined() -> None:
    reader = FrameReader(1 << 19)
    reader.feed(
        frames.frame(frames.HEADERS, frames.END_STREAM, 1, b"a") + frames.frame(frames.CONTINUATION, 0, 1, b"b")
    )
    assert frames_of(reader) == []
    assert reader.in_head
    reader.feed(frames.frame(frames.CONTINUATION, frames.END_HEADERS, 1, b"c"))
    assert frames_of(reader) == [Frame(frames.HEADERS, frames.END_STREAM, 1, b"abc")]
    assert not reader.in_head
