"""Safeguards of the short ways that nearly all deltas take, each with the test that fails without it.

A delta is judged by its shape, its signatures travel as bytes, a unit that comes whole is one entry. No schedule shows
these alone: histories of some dozens of units take the short ways seldom enough, and mostly for deltas that are sound.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import msgspec

from simulation.mutation import Instead, Mutation, answering, value

LOG = "kainite.log"
LOG_TESTS = "tests/kainite/log"
CODEC_TESTS = f"{LOG_TESTS}/format/test_batch_codec.py"
FRAGMENT_TESTS = "tests/kainite/peers/test_fragments.py"
OWNER_TESTS = "tests/kainite/owner"
SESSION = "kainite.peers.sharing.member_session:MemberSession"
SESSION_TESTS = "tests/kainite/peers/sharing/test_member_session.py"
SHAPES_TESTS = "tests/kainite/uow/test_shapes.py"
UNITS_TESTS = f"{LOG_TESTS}/state/test_units.py"


def _off(name: str, place: str, instead: Instead, test: str) -> tuple[Mutation, str]:
    return Mutation(name, place, instead, 0), test


class _AsItCame:
    """Decodes an append's metadata without looking at what the fields hold."""

    def decode(self, metadata: Any) -> Any:
        from kainite.peers.fragments import SentFragment, SentFragments

        fragments, *rest = msgspec.msgpack.decode(metadata)
        return SentFragments(tuple([SentFragment(*one) for one in fragments]), *rest)


def _asked_each_time(original: Any) -> Any:
    def ask_soon(self: Any) -> None:
        asyncio.get_running_loop().create_task(self._ask()).add_done_callback(lambda _: None)

    return ask_soon


def _whole_in_one_entry(original: Any) -> Any:
    """Collects a unit with an end as where all units have one, whatever ends units here."""
    from kainite.settings import UowEnd

    def collect(journal: Any, rules: Any, shard: str, fragment: Any) -> bool:
        ends = replace(rules, end=UowEnd.MARKER) if fragment.ends else rules
        return bool(original(journal, ends, shard, fragment))

    return collect


def _signed_as_the_next(original: Any) -> Any:
    """Gives each fragment the signatures, as bytes, that are there one place further."""

    def fragment(sent: Any, blobs: Any, schemes: Any) -> Any:
        return replace(original(sent, blobs, schemes), signed=sent.signed[8:] + sent.signed[:8])

    return fragment


def _bytes_in_any_case(original: Any) -> Any:
    """Copies signatures that came as bytes, also where they are not as many as the entry has."""

    def record(entry: Any, numbers: Any) -> Any:
        found = original(entry, numbers)
        return msgspec.structs.replace(found, signatures=entry.signed) if entry.signed else found

    return record


def _nothing_resolved(original: Any) -> Any:
    def settle(self: Any, outcome: Any) -> Iterator[Any]:
        list(original(self, outcome))
        return iter(())

    return settle


def _collects_for_ever(original: Any) -> Any:
    """Goes on to collect parts for a unit that is resolved."""

    def settle(self: Any, outcome: Any) -> Iterator[Any]:
        late = dict(self.late)
        resolved = list(original(self, outcome))
        self.late.update(late)
        return iter(resolved)

    return settle


async def _waits_for_ever(self: Any) -> None:
    """Waits without asking whether the owner has failed."""
    waiter = asyncio.get_running_loop().create_future()
    self.waiting.append(waiter)
    await waiter


async def _waiters_stay(self: Any) -> None:
    if self.error is not None:
        raise self.error
    waiter = asyncio.get_running_loop().create_future()
    self.waiting.append(waiter)
    await waiter


def _nulls_pass(original: Any) -> Any:
    def judge(self: Any, item: Any, *into: Any) -> Any:
        key = item.get("key")
        if type(key) is dict and None in key.values():
            item = {**item, "key": {name: 0 if told is None else told for name, told in key.items()}}
        return original(self, item, *into)

    return judge


def _any_ordinal(original: Any) -> Any:
    def judge(self: Any, item: Any, *into: Any) -> Any:
        return original(self, {**item, "ordinal": 0} if "ordinal" in item else item, *into)

    return judge


def _shape_without(**none: Any) -> Instead:
    return lambda original: lambda **more: original(**{**more, **none})


def _any_number_of_deltas(original: Any) -> Any:
    """Takes a unit as it is, whatever number of deltas was announced."""

    def unit(tid: int, parts: Any) -> Any:
        last = max(parts)
        head = parts[last].head
        deltas = sum(len(part.deltas()) for part in parts.values())
        return original(tid, {**parts, last: parts[last]._replace(head=head._replace(size=deltas))})

    return unit


def _given_in_any_case(original: Any) -> Any:
    return lambda self, units, act: original(self, [replace(unit, fault=None) for unit in units], act)


async def _judged_or_broken(self: Any, unit: Any, signing: Any) -> None:
    await self._apply(unit, signing, await self._judge(unit, signing))


def _any_update(_: Any, delta: Any) -> bool:
    return bool(delta.op == "update")


OFF: tuple[tuple[Mutation, str], ...] = (
    # From the shard to the owner.
    _off("readers are asked while a unit waits", f"{SESSION}._ask_soon", answering(None),
         f"{SESSION_TESTS}::test_a_client_is_asked_at_once_unless_its_answer_is_under_way"),
    _off("a slow client is not asked again", f"{SESSION}._ask_soon", _asked_each_time,
         f"{SESSION_TESTS}::test_a_client_is_asked_at_once_unless_its_answer_is_under_way"),
    _off("types of a fragment's fields", "kainite.peers.fragments:_DECODER", value(_AsItCame()),
         f"{FRAGMENT_TESTS}::test_what_is_no_fragment_is_refused"),
    _off("signatures of the fragment itself", "kainite.peers.fragments:_fragment", _signed_as_the_next,
         f"{FRAGMENT_TESTS}::test_they_come_back_as_they_were_sent"),
    # In the log.
    _off("as many signatures as the entry has", f"{LOG}.format.batch_codec:_record", _bytes_in_any_case,
         f"{CODEC_TESTS}::test_signatures_of_which_one_came_twice_are_written_once"),
    _off("deltas of a unit with an end, where units have none", f"{LOG}.collecting.collect:_collect_fragment",
         _whole_in_one_entry,
         f"{LOG_TESTS}/collecting/test_watermark.py::TestAUnit::test_with_an_end_that_is_sent_again_is_recognised"),
    _off("what is resolved holds back nothing", f"{LOG}.state.units:UnitFold._settle", _nothing_resolved,
         f"{UNITS_TESTS}::test_an_entry_tells_what_it_resolved_each_once"),
    _off("what is resolved collects nothing", f"{LOG}.state.units:UnitFold._settle", _collects_for_ever,
         f"{UNITS_TESTS}::test_parts_under_the_name_of_a_resolved_unit_that_lacked_some_open_another"),
    _off("an owner that has failed lets nobody wait", "kainite.owner.append_queue:PendingAppend.durable",
         value(_waits_for_ever),
         f"{OWNER_TESTS}/test_durable_grants.py::test_whoever_asks_an_owner_that_has_failed_is_told_so"),
    _off("who gave up waits no more", "kainite.owner.append_queue:PendingAppend.durable", value(_waiters_stay),
         f"{OWNER_TESTS}/test_append_queue.py"
         "::test_those_who_gave_up_waiting_for_a_store_that_hangs_leave_nothing_behind"),
    # Deltas that the owner has not looked into.
    _off("as many deltas as were announced", "kainite_spark.executor.assemble:_unit", _any_number_of_deltas,
         "tests/kainite_spark/executor/test_assemble.py"
         "::test_a_unit_whose_deltas_are_not_those_that_were_announced_has_a_fault"),
    _off("no target is given a unit with a fault", "kainite_spark.executor.target_attempts:TargetAttempts.commit",
         _given_in_any_case,
         "tests/kainite_spark/executor/test_group_commit.py"
         "::test_a_unit_whose_deltas_cannot_be_read_fails_alone_and_no_target_is_given_it"),
    _off("a misfit that cannot be read stops nothing", "kainite.owner.refit:Refitting._judge_again",
         value(_judged_or_broken),
         f"{OWNER_TESTS}/test_refit.py"
         "::test_a_misfit_whose_deltas_cannot_be_read_stays_as_it_is_and_the_log_goes_on"),
    # Deltas that are judged by their shapes.
    _off("nulls in the key of a known shape", "kainite.uow.shapes:Shapes.judge", _nulls_pass,
         f"{SHAPES_TESTS}::test_a_value_that_is_not_plainly_in_order_goes_the_general_way"),
    _off("ordinal of a known shape", "kainite.uow.shapes:Shapes.judge", _any_ordinal,
         f"{SHAPES_TESTS}::test_a_value_that_is_not_plainly_in_order_goes_the_general_way"),
    _off("key and row of a known shape agree", "kainite.uow.shapes:Shape", _shape_without(in_both=()),
         f"{SHAPES_TESTS}::test_a_value_that_is_not_plainly_in_order_goes_the_general_way"),
    _off("a key that says nothing, of a known shape", "kainite.uow.shapes:Shape", _shape_without(unclear=frozenset()),
         f"{SHAPES_TESTS}::test_a_known_shape_of_a_table_with_a_key_that_says_nothing_writes_that_key_too"),
    _off("what an update touches beside its row", "kainite.uow.touched.plan:TablePlan.touches_row_alone",
         value(_any_update), "tests/kainite/uow/test_signature.py::test_these_conflict"),
)  # fmt: skip
"""The safeguards and their tests."""
