"""Numbers and texts are read one behind the other, and not beyond the end."""

from __future__ import annotations

import pytest

from kainite.base.errors import SourceError
from kainite.capture.mysql.byte_reader import ByteReader


def test_numbers_and_texts() -> None:
    reader = ByteReader(b"\x05\x00\xfa\xfc\x00\x01\xfd\x00\x00\x01\xfe" + bytes(7) + b"\x01\x02ab")
    assert reader.number(2) == 5
    assert [reader.packed() for _ in range(4)] == [250, 256, 65536, 2**56]
    assert (reader.text(), reader.left) == (b"ab", 0)


@pytest.mark.parametrize("data", [b"", b"\xff", b"\xfc\x00", b"\x03ab"])
def test_what_ends_too_early_is_refused(data: bytes) -> None:
    with pytest.raises(SourceError):
        ByteReader(data).text()
