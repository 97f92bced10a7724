from __future__ import annotations

import pytest

from kainite.processors.crc32c import crc32c


@pytest.mark.parametrize(
    ("data", "checksum"),
    [
        (b"", 0),
        (b"123456789", 0xE3069283),
        # RFC 3720, B.4: the CRC examples of iSCSI.
        (bytes(32), 0x8A9136AA),
        (b"\xff" * 32, 0x62A8AB43),
        (bytes(range(32)), 0x46DD794E),
    ],
)
def test_known_checksums(data: bytes, checksum: int) -> None:
    assert crc32c(data) == checksum
