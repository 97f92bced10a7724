"""The newest GTID of each domain is what has been read."""

from __future__ import annotations

from kainite.capture.mysql.gtids import GtidPosition


def test_domains_are_kept_apart() -> None:
    position = GtidPosition("1-1-5,0-1-3")
    for gtid in ("0-2-4", "1-1-6", "2-1-1"):
        position.add(gtid)
    assert position.text == "0-2-4,1-1-6,2-1-1"
    assert GtidPosition("").text == ""


def test_mysqls_servers_are_domains() -> None:
    position = GtidPosition("")
    for number in (1, 2):
        position.add(f"00112233-4455-6677-8899-aabbccddeeff:{number}")
    assert position.text == "00112233-4455-6677-8899-aabbccddeeff:2"
