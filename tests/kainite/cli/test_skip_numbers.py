"""``kainite log skip``, as a person calls it; what it does is in tests/kainite/owner/test_skipping.py."""

from __future__ import annotations

from support.log_cli import LogWorld


async def test_a_refusal_is_told_with_its_reason(log_world: LogWorld) -> None:
    status, _, errors = await log_world.kainite("log", "skip", "17", "--yes")
    assert (status, errors) == (1, "kainite: no number is awaited: uowOrder is not dense\n")


async def test_nothing_is_asked_unless_the_person_says_yes(log_world: LogWorld) -> None:
    status, output, _ = await log_world.kainite("log", "skip", "17")
    assert status == 1
    assert "No longer wait for units with numbers up to 17?" in output
    assert log_world.store.read_requests("0") == []
