"""The message is the KPL's: read and written byte for byte as an encoder of its own does."""

from __future__ import annotations

from kainite.kinesis.kpl_message import DIGEST_BYTES, MAGIC, digest, message_class
from support import kpl
from support.kpl import User


def test_the_message_is_the_kpls_byte_for_byte() -> None:
    body = kpl.message([User(b"one", 0, 0), User(b"two", 1)], ["a", "b"], ["17"])
    message = message_class()(partition_key_table=[b"a", b"b"], explicit_hash_key_table=[b"17"])
    message.records.add(partition_key_index=0, explicit_hash_key_index=0, data=b"one")
    message.records.add(partition_key_index=1, data=b"two")
    assert message.SerializeToString() == body
    assert MAGIC + body + digest(body) == kpl.sealed(body)
    assert len(digest(body)) == DIGEST_BYTES
