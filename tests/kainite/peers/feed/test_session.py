"""The owner's side of a follower's connection, over a real socket: what becomes durable as it begins."""

from __future__ import annotations

import asyncio
import contextlib

from kainite.peers.connection.feed_messages import FeedUpTo, Follow
from kainite.peers.connection.shard_messages import VERSION

from kainite.log.format.entry import ReqId
from kainite.peers.connection.frames import FrameDecoder
from kainite.peers.feed.session import FeedSession
from kainite.waltz.wire.versions import decode_message
from support.followed_log import LOG, append
from support.log_members import LIMIT, members


async def test_a_batch_that_becomes_durable_before_the_first_step_is_said_to_be_there() -> None:
    # Nobody would read it else, until another one becomes durable.
    writers: asyncio.Queue[asyncio.StreamWriter] = asyncio.Queue()
    async with members() as all_, await asyncio.start_server(lambda _, w: writers.put_nowait(w), "127.0.0.1") as server:
        log = await all_.join("a")
        await append(log, 1)
        owner = log.owner
        assert owner is not None
        reader, client = await asyncio.open_connection(*server.sockets[0].getsockname())
        writer = await writers.get()
        wanted = Follow(ReqId(), LOG, "f", owner.durable_id, 1 << 20, 0, outcomes=False)
        session = FeedSession(owner, writer, wanted, lambda: None)
        await append(log, 2)
        sending = asyncio.create_task(session.send())
        try:
            decoder = FrameDecoder()
            decoder.expect_messages(VERSION)
            while (frame := decoder.next_frame()) is None:
                decoder.receive(await asyncio.wait_for(reader.read(1 << 16), LIMIT))
            said = decode_message(VERSION, frame.body)
            assert isinstance(said, FeedUpTo)
            assert said.next_id == owner.durable_id
            assert session.lag > 0
        finally:
            sending.cancel()
            await asyncio.gather(sending, return_exceptions=True)
            for one in (client, writer):
                one.close()
                with contextlib.suppress(OSError):
                    await one.wait_closed()
