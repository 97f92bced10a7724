"""Safeguards of the fleet's duties, each with the test that fails without it.

The simulator runs the way of the data; it gives no duties to anybody. What a simulation of duties would do (workers and
leaders that die, stand still in the middle of a plan, lose answers, in any order) the stateful test does,
``test_member_safety.py``; but a few dozen examples find by chance what needs two writers in one instant, so here a test
of that very course of events stands beside each safeguard.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from simulation.mutation import Instead, Mutation, answering, value

DUTIES = "kainite.fleet"
TESTS = "tests/kainite/fleet"
MEMBER = f"{TESTS}/steps/test_member.py"


def _off(name: str, place: str, instead: Instead, test: str) -> tuple[Mutation, str]:
    return Mutation(name, f"{DUTIES}.{place}", instead, 0), test


def _led_by_nobody(original: Any) -> Any:
    return lambda changes, led=None, events=(): original(changes, None, events)


async def _never_fenced(self: Any) -> bool:
    return False


def _given_back_at_once(original: Any) -> Any:
    def ending(self: Any, duty: Any, me: Any, program: Any) -> Iterator[Any]:
        yield from original(self, duty, me, None)

    return ending


def _running_alone(self: Any, worker: Any) -> float:
    return float(sum(duty.work.weight for duty in self.duties_of(worker) if duty.status == "running"))


def _last_first(original: Any) -> Any:
    def picture_of(records: Any) -> Any:
        picture = original(records)
        return replace(picture, messages=picture.messages[::-1])

    return picture_of


def _name_alone(self: Any, worker: Any) -> bool:
    return bool(self.status.held and self.worker == worker.name)


def _one_incarnation(original: Any) -> Any:
    def init(self: Any, *arguments: Any, **more: Any) -> None:
        original(self, *arguments, **{**more, "new_incarnation": lambda: "1"})

    return init


def _always_gone(original: Any) -> Any:
    return lambda *arguments: original(*arguments[:-1], lambda _: True)


def _counted_from_the_beginning(original: Any) -> Any:
    return lambda self, look: original(self, replace(look, began=look.ended, ended=look.began))


def _wanted_anew(original: Any) -> Any:
    def missing(self: Any, me: Any, picture: Any) -> Iterator[Any]:
        from kainite.fleet.steps.leading import Written
        from kainite.fleet.store.contract import PutRecord

        yield from original(self, me, picture)
        for duty in picture.duties.values():
            if duty.declared and duty.halted:
                yield Written(PutRecord(replace(duty, halted=False)))

    return missing


def _unassigned_in_any_case(original: Any) -> Any:
    def orphans(me: Any, picture: Any) -> Iterator[Any]:
        from kainite.fleet.model.states import DutyStatus
        from kainite.fleet.store.contract import PutRecord

        for written in original(me, picture):
            freed = replace(written.change.record, status=DutyStatus.UNASSIGNED, halted=False)
            yield replace(written, change=PutRecord(freed))

    return orphans


def _without_generation(original: Any) -> Any:
    return lambda self, commit: original(self, replace(commit, led=None))


def _unconditional(original: Any) -> Any:
    def request(self: Any, change: Any) -> Any:
        whole = original(self, change)
        return {name: whole[name] for name in whole if name not in ("ConditionExpression", "ExpressionAttributeValues")}

    return request


def _forgetful(original: Any) -> Any:
    def beginning(self: Any, *arguments: Any) -> Iterator[Any]:
        self._given_back.clear()
        yield from original(self, *arguments)

    return beginning


def _to_whoever_comes(original: Any) -> Any:
    def obeyed(me: Any, picture: Any, *arguments: Any) -> Any:
        messages = tuple(replace(message, process="") for message in picture.messages)
        return original(me, replace(picture, messages=messages), *arguments)

    return obeyed


def _nothing(*_: Any, **__: Any) -> Any:
    from kainite.fleet.steps.plan import PlanStep

    return PlanStep()


OFF: tuple[tuple[Mutation, str], ...] = (
    # Who may write.
    _off("leader's generation", "steps.leading:FleetCommit", _led_by_nobody,
         f"{MEMBER}::test_a_frozen_leader_writes_nothing_any_more"),
    _off("leader's generation in the table", "store.dynamodb:DynamoDBFleetStore._together", _without_generation,
         f"{TESTS}/store/test_contract.py::test_a_former_leader_changes_nothing"),
    _off("version of a record", "store.memory:MemoryFleetStore._holds", answering(True),
         f"{MEMBER}::test_a_status_is_not_written_over_what_an_operator_wrote_meanwhile"),
    _off("version of a record in the table", "store.dynamodb:DynamoDBFleetStore._request", _unconditional,
         f"{TESTS}/store/test_contract.py::test_of_two_writers_of_one_version_one_succeeds"),
    # One place at a time.
    _off("a worker fences itself", "steps.member:FleetMember.lease_end", value(property(lambda self: float("inf"))),
         f"{MEMBER}::test_a_worker_that_wakes_stops_its_programs_before_anything_else"),
    _off("the loop fences its worker", "service:FleetService._fence", value(_never_fenced),
         f"{TESTS}/test_service.py::test_while_the_table_is_away_programs_end_with_the_lease"),
    _off("a lease is shorter than the silence", "steps.timing:LEASE_PART", value(3.0),
         f"{MEMBER}::test_a_worker_that_wakes_stops_its_programs_before_anything_else"),
    _off("stopped before it starts elsewhere", "steps.own_duties:OwnDuties._ending", _given_back_at_once,
         f"{MEMBER}::test_a_move_waits_until_the_program_has_ended_however_fast_the_leader_is"),
    _off("a program whose duty is another's is killed", "steps.own_duties:_strange", value(_nothing),
         f"{MEMBER}::test_a_program_of_an_earlier_assignment_ends_before_the_duty_starts_again"),
    _off("a duty is one process's", "model.records:Duty.belongs_to", value(_name_alone),
         f"{TESTS}/model/test_states.py::test_a_duty_belongs_to_one_process_not_to_a_name"),
    _off("two workers of one name", "steps.member:entering", _always_gone,
         f"{MEMBER}::test_two_workers_of_one_name_do_not_both_run"),
    _off("a worker that was silent comes back as another", "steps.member:FleetMember.__init__", _one_incarnation,
         f"{MEMBER}::test_a_leader_that_acts_on_an_old_read_takes_nothing_from_a_worker_that_has_come_back"),
    _off("ages count from a read's end", "steps.observer:Observer.see", _counted_from_the_beginning,
         f"{TESTS}/steps/test_observer.py::test_a_sign_of_life_is_as_young_as_the_reads_that_showed_it_allow"),
    _off("signs of life that a change of leader has hidden", "steps.observer:Observer._allow_for_unseen_signs",
         answering(None),
         f"{MEMBER}::test_a_worker_that_missed_a_leader_does_not_count_the_one_before_as_silent_too_early"),
    _off("no start while a give-back may still come", "steps.own_duties:OwnDuties._beginning", _forgetful,
         f"{MEMBER}::test_a_duty_does_not_start_while_a_write_that_gave_it_back_may_still_come"),
    # An operator's wishes.
    _off("a message is one process's", "steps.member:obeyed", _to_whoever_comes,
         f"{MEMBER}::test_a_message_to_a_process_is_not_for_its_successor"),
    _off("messages of one look", "steps.own_record:MOST_MESSAGES", value(10**6),
         f"{MEMBER}::test_more_messages_than_a_commit_may_have_are_obeyed_one_after_the_other"),
    _off("nobody but an operator starts what he stopped", "steps.leading:Leading._missing", _wanted_anew,
         f"{MEMBER}::test_an_operators_stop_outlives_every_leader"),
    _off("a dead worker's duty that was stopped stays so", "steps.leading:_orphans", _unassigned_in_any_case,
         f"{MEMBER}::test_a_duty_stopped_while_its_worker_is_dead_does_not_start_elsewhere"),
    _off("messages in order", "store.memory:picture_of", _last_first,
         f"{MEMBER}::test_messages_are_obeyed_once_in_order_and_then_gone"),
    # Where, and when.
    _off("what waits is load", "model.records:Picture.load_of", value(_running_alone),
         f"{TESTS}/model/test_assignment.py::test_what_waits_at_a_worker_counts_before_it_runs"),
    _off("a leader settles", "steps.timing:Timing.settle", value(property(lambda self: 0.0)),
         f"{MEMBER}::test_hosts_that_start_together_share_the_duties_from_the_beginning"),
    _off("looks that are expected", "steps.expecting:Expecting.next_look", answering(None),
         f"{TESTS}/steps/test_expecting.py::test_a_duty_that_nobody_can_have_is_not_expected_for_ever"),
    _off("a leader that lives is not replaced", "steps.member:FleetMember._is_vacant", answering(True),
         f"{MEMBER}::test_one_leader_stays"),
    _off("a word of a later release is kept", "store.items:_with_extra",
         value(lambda fields, extra: {**extra, **fields}),
         f"{TESTS}/store/test_items.py::test_a_status_of_a_later_release_is_unknown_and_kept"),
)  # fmt: skip
"""The safeguards and their tests."""
