"""Parts of units as bytes: what comes out is what the entries say."""

from __future__ import annotations

import pickle

from hypothesis import given
from hypothesis import strategies as st

from kainite.log.format.batch_codec import decode, encode
from kainite.log.format.entry import Batch, Entry, EntryKind, FragmentMeta, RefitMeta, UnitMeta
from kainite.log.format.index import KINDS
from kainite.uow.packing import Blob, Piece
from kainite.uow.touches import Touched
from kainite_spark.plan.given_parts import packed, unpacked
from kainite_spark.plan.unit_part import unit_part

SIGNATURES = st.frozensets(st.integers(0, 2**64 - 1), max_size=4)
METAS = st.one_of(
    st.builds(FragmentMeta, st.just("T-1"), st.just("s"), st.integers(0, 3)),
    st.builds(FragmentMeta, st.just("T-1"), st.just("s"), st.just(3), without=st.just((1,))),
    st.builds(UnitMeta, st.sampled_from(["T-1", "\u00fc"]), st.integers(0, 3)),
    st.builds(UnitMeta, st.just("T-1"), st.just(2), without=st.just((0, 1))),
    st.builds(RefitMeta, st.just(3), st.just("T-1"), st.integers(0, 3)),
)
ENTRIES = st.builds(
    lambda meta, written, read, data: Entry(KINDS[type(meta)], meta, Touched(written, read), data),
    METAS, SIGNATURES, SIGNATURES, st.binary(max_size=20),
)  # fmt: skip


@given(st.lists(ENTRIES, min_size=1, max_size=8), st.booleans())
def test_packed_parts_are_the_parts_of_the_entries(made: list[Entry], is_decoded: bool) -> None:
    batch = Batch(0, 1, 0, tuple(made))
    entries = decode(*encode(batch)).entries if is_decoded else batch.entries
    units = [(number // 3, number % 3) for number in range(len(entries))]
    travelled = pickle.loads(pickle.dumps(packed(units, entries)))
    parts = [unit_part(unit, number, entry) for (unit, number), entry in zip(units, entries, strict=True)]
    assert list(unpacked(units, travelled)) == parts


def test_a_part_whose_deltas_cannot_be_decompressed_says_so_at_the_task() -> None:
    broken = Entry(EntryKind.UNIT, UnitMeta("T-1", 1), piece=Piece(Blob(b"no frame", 5, 0), 0, 5))
    (part,) = unpacked([(7, 0)], packed([(7, 0)], [broken]))
    assert part.fault is not None
    assert part.head is not None
