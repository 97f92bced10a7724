"""One run of an extractor's program: its events in order, its limits, and how it ends. Real programs in shell."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from kainite.base.errors import ChildExitedError, ChildProtocolError, ChildTimeoutError
from kainite.child.markers.extraction import CycleDone, Extracted, Unfinished
from kainite.extract.extractor import HELD_LIMIT, Extractor
from kainite.settings import ChildProtocol, ChildSettings, ExtractMode, ExtractSettings

CHILD = ChildSettings(("true",), protocol=ChildProtocol.MARKERS, shutdown_grace=20.0)


@asynccontextmanager
async def running(script: str, mode: ExtractMode, reply_timeout: float = 60.0) -> AsyncIterator[Extractor]:
    extract = ExtractSettings(command=("sh", "-c", script), mode=mode, reply_timeout=reply_timeout)
    extractor = Extractor(extract, replace(CHILD))
    try:
        yield extractor
    finally:
        extractor.kill()
        await extractor.close()


async def test_a_plain_extractors_messages_come_until_its_output_ends() -> None:
    async with running(r"printf 'one\ntwo\nha'", ExtractMode.PLAIN) as extractor:
        events = [await extractor.next() for _ in range(4)]

        assert events == [Extracted(b"one"), Extracted(b"two"), Unfinished(b"ha"), None]
        assert await extractor.close() == 0


async def test_a_cycle_has_messages_and_an_end() -> None:
    script = r"while read -r request; do printf 'got %s\n\0' $request; done"
    async with running(script, ExtractMode.CYCLIC) as extractor:
        for request in (b"a", b"b"):
            extractor.ask(request)
            assert [await extractor.next() for _ in range(2)] == [Extracted(b"got " + request), CycleDone()]


async def test_a_cyclic_extractor_that_ends_in_a_cycle_tells_its_last_words() -> None:
    async with running("read -r _; echo no source >&2; exit 4", ExtractMode.CYCLIC) as extractor:
        extractor.ask(b"")
        with pytest.raises(ChildExitedError, match="ended with status 4: no source"):
            await extractor.next()
        assert extractor.broken


async def test_a_cyclic_extractor_that_is_silent_is_given_up() -> None:
    async with running("read -r _; exec sleep 100", ExtractMode.CYCLIC, reply_timeout=0.1) as extractor:
        extractor.ask(b"")
        with pytest.raises(ChildTimeoutError, match=r"was silent for 0\.1 s"):
            await extractor.next()


async def test_words_that_nobody_asked_for_break_the_protocol() -> None:
    async with running("echo early; exec sleep 100", ExtractMode.CYCLIC) as extractor:
        with pytest.raises(ChildProtocolError, match="wrote while no cycle was requested"):
            await extractor.next()


async def test_what_is_not_taken_waits_in_the_pipe() -> None:
    """Shows that messages of three times the limit come one by one, and none is lost."""
    script = f"yes {'x' * 99} | head -n {3 * HELD_LIMIT // 100}"
    async with running(script, ExtractMode.PLAIN) as extractor:
        count = 0
        while await extractor.next() is not None:
            count += 1

    assert count == 3 * HELD_LIMIT // 100


async def test_a_plain_extractor_that_is_asked_to_end_says_its_last_words() -> None:
    # The shell may say "Terminated" of the sleep that ended with it.
    script = "exec 2> /dev/null; trap 'echo last; exit 3' TERM; echo ready; while :; do sleep 0.01; done"
    async with running(script, ExtractMode.PLAIN) as extractor:
        assert await extractor.next() == Extracted(b"ready")
        extractor.terminate()
        assert await extractor.next() == Extracted(b"last")
        assert await extractor.next() is None
        status = await extractor.close()

        assert str(extractor.failure(status)).endswith("ended with status 3")
