"""Which part did not keep up is read off the queues as pgbench ends."""

from __future__ import annotations

import pytest

from kainite_demo.sustained import LoadStanding


@pytest.mark.parametrize(("dispatched", "bottleneck"), [(600, None), (500, None), (200, "the stream and the daemon")])
def test_what_the_watermark_holds_back_on_purpose_is_no_queue(dispatched: int, bottleneck: str | None) -> None:
    standing = LoadStanding(100, 10.0, 1000, 1000, dispatched, dispatched, grace=4.0)

    assert standing.bottleneck == bottleneck


@pytest.mark.parametrize(
    ("made", "captured", "dispatched", "applied", "bottleneck"),
    [
        (1000, 1000, 1000, 1000, None),
        (990, 950, 900, 850, None),
        (400, 400, 400, 390, "pgbench and the source"),
        (1000, 400, 390, 380, "the extractor"),
        (1000, 900, 500, 450, "the stream and the daemon"),
        (1000, 950, 900, 100, "the apply job"),
    ],
)
def test_the_part_with_the_longest_queue_is_the_bottleneck(
    made: int, captured: int, dispatched: int, applied: int, bottleneck: str | None
) -> None:
    standing = LoadStanding(100, 10.0, made, captured, dispatched, applied)

    assert standing.bottleneck == bottleneck
    assert standing.offered == made / 10
