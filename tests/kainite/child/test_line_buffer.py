from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kainite.child.line_buffer import Line, LineBuffer

pieces = st.lists(
    st.one_of(st.binary(max_size=12), st.sampled_from([b"\n", b"\r", b"\r\n", b"ab", b"\xff"])), max_size=20
)


def feed_all(chunks: list[bytes], max_line: int = 1000, *, in_pieces: bool = False) -> list[Line]:
    buffer = LineBuffer(max_line, in_pieces=in_pieces)
    lines = [line for chunk in chunks for line in buffer.feed(chunk)]
    return lines + buffer.end()


@given(pieces, st.integers(1, 30), st.booleans())
def test_lines_do_not_depend_on_the_chunks(chunks: list[bytes], max_line: int, in_pieces: bool) -> None:
    whole = b"".join(chunks)
    single = [whole[i : i + 1] for i in range(len(whole))]
    expected = feed_all([whole], max_line, in_pieces=in_pieces)
    assert (
        feed_all(chunks, max_line, in_pieces=in_pieces) == feed_all(single, max_line, in_pieces=in_pieces) == expected
    )


@given(pieces, st.integers(1, 30))
def test_in_pieces_nothing_is_dropped_and_no_piece_exceeds_the_limit(chunks: list[bytes], max_line: int) -> None:
    lines = feed_all(chunks, max_line, in_pieces=True)
    assert all(0 < len(line.text) <= max_line for line in lines)
    joined = "".join(line.text.hex() + ("" if line.cut else " ") for line in lines).split()
    assert joined == [text.hex() for text in b"".join(chunks).splitlines() if text]


@given(st.text(st.characters(codec="utf-8", exclude_categories=["Cc"], exclude_characters="\u2028\u2029"), max_size=40))
def test_a_piece_ends_between_characters(text: str) -> None:
    assert "".join(line.text.decode() for line in feed_all([text.encode()], 4, in_pieces=True)) == text


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
