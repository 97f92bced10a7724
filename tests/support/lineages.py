"""Random lineages of shards, for property tests."""

from __future__ import annotations

from hypothesis import strategies as st

from kainite.kinesis.shards import Shard


@st.composite
def lineages(draw: st.DrawFn) -> tuple[Shard, ...]:
    """Draws any history of splits and merges, without the shards that are older than the retention time."""
    open_ids = [str(n) for n in range(draw(st.integers(1, 4)))]
    shards = {name: Shard(name) for name in open_ids}
    for _ in range(draw(st.integers(0, 12))):
        parents = tuple(draw(st.sampled_from(open_ids)) for _ in range(draw(st.integers(1, 2))))
        parents = tuple(dict.fromkeys(parents))
        children = [str(len(shards) + n) for n in range(2 if len(parents) == 1 else 1)]
        for parent in parents:
            shards[parent] = Shard(parent, shards[parent].parents, open=False)
            open_ids.remove(parent)
        shards |= {child: Shard(child, parents) for child in children}
        open_ids += children
    trimmed = draw(st.integers(0, 3))
    return tuple(shard for number, shard in enumerate(shards.values()) if shard.open or number >= trimmed)
