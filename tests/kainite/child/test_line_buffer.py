from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kainite.child.line_buffer import Line, LineBuffer

pieces = st.lists(
    st.one_of(st.binary(max_size=12), st.sampled_from([b"\n", b"\r", b"\r\n", b"ab", b"\xff"])), max_size=20
)


def feed_all(chunks: list[bytes], max_line: int = 1000) -> list[Line]:
    buffer = LineBuffer(max_line)
    lines = [line for chunk in chunks for line in buffer.feed(chunk)]
    return lines + buffer.end()


@given(pieces, st.integers(1, 30))
def test_lines_do_not_depend_on_the_chunks(chunks: list[bytes], max_line: int) -> None:
    whole = b"".join(chunks)
    single = [whole[i : i + 1] for i in range(len(whole))]
    assert feed_all(chunks, max_line) == feed_all([whole], max_line) == feed_all(single, max_line)


@given(pieces)
def test_lines_are_what_bytes_splitlines_gives(chunks: list[bytes]) -> None:
    assert [line.text for line in feed_all(chunks)] == [text for text in b"".join(chunks).splitlines() if text]


@given(pieces, st.integers(1, 30))
def test_no_line_exceeds_the_limit_and_only_longer_ones_are_cut(chunks: list[bytes], max_line: int) -> None:
    expected = [text for text in b"".join(chunks).splitlines() if text]
    lines = feed_all(chunks, max_line)
    assert [line.text for line in lines] == [text[:max_line] for text in expected]
    assert [line.cut for line in lines] == [len(text) > max_line for text in expected]


def test_a_line_that_never_ends_is_reported_as_soon_as_it_is_too_long() -> None:
    buffer = LineBuffer(4)
    assert buffer.feed(b"abc") == []
    assert buffer.feed(b"def") == [Line(b"abcd", cut=True)]
    assert buffer.feed(b"x" * 100) == []
    assert buffer.feed(b"\nnext\n") == [Line(b"next")]
