"""A batch as DynamoDB's items: in its slot, or in chunks of which the slot tells the number.

========================  =========================================================  =================================
a batch of                stands in                                                  a crash leaves
========================  =========================================================  =================================
up to CHUNK_BYTES         the slot: ``i`` index, ``d`` payload                       the slot, or nothing
more                      chunks, which are written before the slot: ``c`` chunks,   chunks without a slot, which are
                          ``l`` the index's length within them                       deleted with the ids around them
========================  =========================================================  =================================

So a batch is durable when its slot is, and whoever finds a slot finds its chunks.
"""

from __future__ import annotations

from kainite.aws.dynamodb import Item, binary, number
from kainite.base.errors import LogCorruptError, LogError
from kainite.log.contract import Slot
from kainite.log.format.batch_codec import decode, encode
from kainite.log.format.entry import Batch
from kainite.store.forks import KnownForks
from kainite.store.log_table import LogTable

CHUNK_BYTES = 380_000
"""The most bytes of a batch in one item: DynamoDB's 400 KB an item, less room for keys and attributes."""

MAX_BATCH_BYTES = 256 * 1024 * 1024


class BatchItems:
    """Writes the chunks of batches, and reads batches back.

    Args:
        table: the log's table.
        forks: tell in which key a chunk stands.
    """

    def __init__(self, table: LogTable, forks: KnownForks) -> None:
        self._table = table
        self._forks = forks

    def body(self, partition: str, batch: Batch, nonce: str) -> Item:
        """Returns the attributes by which the batch's slot has the batch; writes its chunks if it needs any.

        Raises:
            LogError: the batch is larger than the log takes; nothing was written.
            LogUnavailableError: a chunk may not be written.
        """
        index, payload = encode(batch)
        if len(index) + len(payload) <= CHUNK_BYTES:
            # Some doubles of DynamoDB refuse an empty binary.
            return {"i": binary(index), "d": binary(payload)} if payload else {"i": binary(index)}
        whole = index + payload
        if len(whole) > MAX_BATCH_BYTES:
            raise LogError(
                f"a batch of {len(whole)} bytes is larger than the log takes ({MAX_BATCH_BYTES}), and was not written: "
                "let the children emit less in one call (smaller batches: maxRecords), or the source send smaller units"
            )
        chunks = range(0, len(whole), CHUNK_BYTES)
        for chunk_number, start in enumerate(chunks):
            at = self._forks.chunk_key(partition, batch.first_id, nonce, chunk_number)
            self._table.put({**at, "d": binary(whole[start : start + CHUNK_BYTES])})
        return {"c": number(len(chunks)), "l": number(len(index))}

    def batch_from(self, partition: str, item: Item, slot: Slot, *, data: bool) -> Batch:
        """Returns the batch of a slot's item, without the entries' data unless ``data``.

        Raises:
            LogCorruptError: the batch does not read back as written.
        """
        if "c" in item:
            index, payload = self._read_chunks(partition, item, slot, data=data)
        else:
            index = item["i"]["B"]
            payload = (item["d"]["B"] if "d" in item else b"") if data else None
        batch = decode(index, payload)
        if (batch.first_id, batch.generation, len(batch.entries)) != (slot.first_id, slot.generation, slot.count):
            raise LogCorruptError(f"log partition {partition}: slot {slot.first_id} holds another slot's batch")
        return batch

    def _read_chunks(self, partition: str, item: Item, slot: Slot, *, data: bool) -> tuple[bytes, bytes | None]:
        length = int(item["l"]["N"])
        needed = int(item["c"]["N"]) if data else -(-length // CHUNK_BYTES)
        parts = []
        for chunk_number in range(needed):
            at = self._forks.chunk_key(partition, slot.first_id, slot.nonce, chunk_number)
            chunk = self._table.get(at["p"]["S"], at["s"]["S"])
            if chunk is None:
                raise LogCorruptError(
                    f"log partition {partition}: chunk {chunk_number} of slot {slot.first_id} is missing"
                )
            parts.append(chunk["d"]["B"])
        whole = b"".join(parts)
        return whole[:length], whole[length:] if data else None
