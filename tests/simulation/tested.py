"""Safeguards that a named test shows, since no schedule does or few do: two streams, large appends, hung children.

``python -m simulation --tested`` runs each test with its safeguard off, in a process of its own, and fails unless the
test fails then. Those of the short ways, of collecting, of the way into the stream, of the fleet's duties, and of
targets and sources have modules of their own: :mod:`~simulation.tested_short_ways`,
:mod:`~simulation.tested_collecting`, :mod:`~simulation.tested_extract`, :mod:`~simulation.tested_duties`,
:mod:`~simulation.tested_edges`; those of requests about leases :mod:`~simulation.tested_leases`, of loads into MariaDB
:mod:`~simulation.tested_mariadb_loads`.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec

from kainite.log.client import ReadingReport
from kainite.peers.connection.generation import OwnerGeneration
from kainite.peers.sharing.membership import MemberState
from kainite.uow.conflicts import conflict, share_a_row
from kainite.uow.delta import UnitKind
from simulation import (
    tested_collecting,
    tested_duties,
    tested_edges,
    tested_extract,
    tested_leases,
    tested_mariadb_loads,
    tested_short_ways,
)
from simulation.mutation import Instead, Mutation, answering, value

VARIABLE = "KAINITE_SWITCHED_OFF"
"""Names the safeguard that ``switch_off.py`` switches off."""

SHARING = "kainite.peers.sharing"
APPLICATIONS = "kainite.waltz"
SHARING_TESTS = "tests/kainite/peers/sharing"
SECURITY_TESTS = "tests/security"
APPLICATION_TESTS = "tests/kainite/waltz"
WATERMARK_TESTS = "tests/kainite/log/collecting/test_watermark.py"
NAMES_TESTS = "tests/kainite/owner/test_names.py"
WENT_BACK_TESTS = "tests/kainite_spark/driver/test_went_back.py"
NET_EFFECT = "kainite_spark.targets.statements.net_effect"
STATEMENTS = "kainite_spark.targets.statements"
FIRING_HOOKS = "kainite_spark.targets.postgresql.firing_hooks"
CONFORMANCE = "tests/kainite_spark/targets/conformance"
TRIGGER_TESTS = f"{CONFORMANCE}/test_triggers.py"
NET_EFFECT_TESTS = "tests/kainite_spark/targets/statements/test_net_effect.py"
BACKLOG_TESTS = "tests/kainite_spark/plan/test_backlog.py"
AFTER_ACTIONS = "kainite_spark.targets.statements.after_actions"
AFTER_ACTIONS_TESTS = "tests/kainite_spark/targets/statements/test_after_actions.py"


@dataclass(frozen=True, slots=True)
class ShownByTest:
    """A safeguard and the test that fails without it.

    Attributes:
        mutation: switches it off.
        test: the test's file and name.
    """

    mutation: Mutation
    test: str

    def is_noticed(self) -> bool:
        """Runs the test without the safeguard; returns whether it fails."""
        plugin = ("-p", "simulation.switch_off", "-p", "no:cacheprovider")
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-n", "0", *plugin, self.test]
        tests = str(Path(__file__).parents[1])
        environment = {**os.environ, VARIABLE: self.mutation.name, "PYTHONPATH": tests}
        done = subprocess.run(command, env=environment, cwd=Path(tests).parent, capture_output=True, check=False)
        return done.returncode == 1  # 1: tests failed; others: pytest could not run them


def _tested(name: str, place: str, instead: Instead, test: str) -> ShownByTest:
    return ShownByTest(Mutation(name, place, instead, 0), test)


def _only_the_fence(original: Any) -> Any:
    return lambda name, mark, found, acknowledged: original(name, mark, found, len(mark.tids))


def _any_action_takes(original: Any) -> Any:
    """Takes a row whose parent goes for one that goes along, whatever the foreign key does."""

    def takers(self: Any, delta: Any) -> set[Any]:
        parents = tuple(replace(parent, takes_along=parent.cascade is not None) for parent in self.parents)
        taken: set[Any] = original(replace(self, parents=parents), delta)
        return taken

    return takers


def _marks_go(original: Any) -> Any:
    def truncate(self: Any, below: int) -> None:
        self._marked = None
        original(self, below)

    return truncate


def _never_trusts(original: Any) -> Any:
    def refused(self: Any) -> Any:
        self._trusts = False
        return original(self)

    return refused


def _forgives_claims(original: Any) -> Any:
    def seek(self: Any, pause: float | None = None) -> Any:
        self._trusts = self._trusts or self.state is MemberState.CLAIMING
        return original(self, pause)

    return seek


def _always_trusts(original: Any) -> Any:
    def refused(self: Any) -> Any:
        self._trusts = True
        return original(self)

    return refused


def _any_generation(original: Any) -> Any:
    def joined(self: Any, message: Any) -> Any:
        self._generation = OwnerGeneration(0)
        return original(self, message)

    return joined


def _no_time_under_way(original: Any) -> Any:
    def report(self: Any, answer: Any) -> None:
        if self._asked.pop(answer.number, None) is not None and answer.shards:
            self._owner.report(ReadingReport(answer.shards, dict(answer.read)))

    return report


def _by_any_rules(original: Any) -> Any:
    return lambda correction, unit, schemes: correction.kind is not UnitKind.NORMAL and share_a_row(unit, correction)


def _any_row(seed: Any, columns: int, spelled: str) -> int:
    from kainite.uow.touched.key import ROW, _digest

    return _digest(seed, spelled) | ROW


def _any_log(original: Any) -> Any:
    return lambda self, join: original(self, msgspec.structs.replace(join, log=self._name.log))


async def _same_stream(identity: str, owner: Any) -> None:
    return None


def _decoded_side_by_side(original: Any) -> Any:
    async def append(self: Any, message: Any) -> None:
        self._decoding = asyncio.Lock()
        await original(self, message)

    return append


class _Roomy:
    """An owner that has room for everything."""

    def __init__(self, owner: Any) -> None:
        self._owner = owner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._owner, name)

    async def room(self) -> None:
        return None


def _always_room(original: Any) -> Any:
    async def append(self: Any, message: Any) -> None:
        self._owner = _Roomy(self._owner)
        await original(self, message)

    return append


def _last_report(self: Any, awaited: bool = False) -> Any:
    return self._report and self._report[0]


def _asked_once(original: Any) -> Any:
    async def ask(self: Any, request: Callable[[Any], Any]) -> Any:
        await self._there.wait()
        return await request(self.log)

    return ask


def _releases_all(original: Any) -> Any:
    async def give_back(self: Any) -> None:
        for lease in self._keeper.held:
            await self._keeper.release(lease)

    return give_back


class _Everything:
    def __contains__(self, _: object) -> bool:
        return True


class _HoldsAll:
    """A keeper that counts every lease as held."""

    held = _Everything()

    def __init__(self, keeper: Any) -> None:
        self._keeper = keeper

    def __getattr__(self, name: str) -> Any:
        return getattr(self._keeper, name)


def _starts_every_gain(original: Any) -> Any:
    async def follow(self: Any) -> None:
        self._keeper = _HoldsAll(self._keeper)
        await original(self)

    return follow


async def _flush_skipped(self: Any) -> None:
    return None


async def _flushed_at_once(self: Any) -> int:
    mark: int = self.mark
    return mark


async def _reached_at_once(self: Any, transaction: int) -> None:
    return None


async def _refused_at_once(self: Any, peer: Any, partition: Any, failure: Any) -> None:
    await peer.send(failure)


def _no_locks_at_first(original: Any) -> Any:
    from kainite.waltz.locks import Locks

    return lambda store, mounted, count: Locks(-1)


class _NotRenewed:
    def __init__(self, mounted: Any) -> None:
        self._mounted = mounted

    def __getattr__(self, name: str) -> Any:
        return getattr(self._mounted, name)

    def renew(self, *_: Any, **__: Any) -> None:
        pass


def _begun_without_renewal(original: Any) -> Any:
    return lambda store, settings, mounted: original(store, settings, _NotRenewed(mounted))


def _any_stream(original: Any) -> Any:
    return lambda self, stream, *, adopt=False: original(self, stream, adopt=True)


def _nothing_is_old(self: Any, number: int | None) -> bool:
    return False


def _no_window(original: Any) -> Any:
    return lambda recent, window, generation: original(recent, 0, generation)


async def _entry_alone(self: Any, owner: Any, move: Any) -> None:
    from kainite.owner.upkeep import _control

    await _control(owner, move.meta, b"")


async def _nothing_moves(self: Any, owner: Any) -> None:
    return None


def _all_deleted(original: Any) -> Any:
    return lambda stale, generation: tuple(stale)


def _recalls_anything(original: Any) -> Any:
    def recall(self: Any, items: Any) -> None:
        found = dict(items)
        original(self, [(each.key, found.get(each.key, b"").ljust(16 * each.count)) for each in self.segments])

    return recall


def _nobody_overdrawn(original: Any) -> Any:
    def admit(self: Any, share: Any, size: int) -> bool:
        return self.held + size <= self._limit and bool(original(self, share, size))

    return admit


def _without_limit(original: Any) -> Any:
    """Makes a budget in which there is always room."""
    return lambda self, limit=0, **more: original(self, 2**60, **more)


def _patience_runs(original: Any) -> Any:
    """Makes shares that never tell that their lines are on their way to the log."""
    return type("Share", (original,), {"appending": property(lambda self: False, lambda self, appending: None)})


def _endless_patience(original: Any) -> Any:
    return lambda self, limit=256 * 2**20, patience=0.0: original(self, limit, 1e6)


def _signed_by_what_is_left(original: Any) -> Any:
    return lambda self, unit, kept, lost: self._signatures.of(kept)


def _never_acts(original: Any) -> Any:
    def of(table: Any, plan: Any, accepting: Any, *, whole: bool) -> Any:
        return replace(original(table, plan, accepting, whole=whole), may_act=False)

    return of


def _fires_nothing(_: Any) -> Any:
    return lambda planner, hooked: lambda delta: False


def _as_it_came(_: Any) -> Any:
    return lambda stepper, deltas, again=False: deltas


def _without_drift(self: Any, at: float) -> float:
    ahead: float = self._ahead
    return ahead


def _tip_at_once(original: Any) -> Any:
    return lambda self, until, at_tip=False: original(self, until, at_tip=True)


class _EqualToAll(tuple[int, ...]):
    """Entries that seem to be any others."""

    def __eq__(self, _: object) -> bool:
        return True

    def __ne__(self, _: object) -> bool:
        return False

    __hash__ = tuple.__hash__


class _AsItWas:
    """A unit whose entries seem to be the same at any time."""

    def __init__(self, unit: Any) -> None:
        self._unit = unit
        self.entries = _EqualToAll(unit.entries)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._unit, name)


def _never_grown(original: Any) -> Any:
    def unit_asked(state: Any, request: Any) -> Any:
        found = original(state, request)
        return found and _AsItWas(found)

    return unit_asked


def _lets_all_in(original: Any) -> Any:
    from kainite.peers.connection.introduction import Guest, LetIn
    from kainite.peers.rights import OF_THE_LOG

    return lambda self, ours, theirs: LetIn(Guest("anybody", OF_THE_LOG), bytes(32))


def _believes_every_owner(original: Any) -> Any:
    def check(self: Any, proof: bytes) -> None:
        original(self, self._expected)

    return check


class _NoRightNeeded:
    """The right that each request needs: one that every user of the tests has or lacks alike."""

    def __getitem__(self, _: type) -> str:
        return "daemon"


def _no_budget(original: Any) -> Any:
    async def make_room(self: Any, size: int) -> None:
        """Takes nothing."""

    return make_room


TESTED: tuple[ShownByTest, ...] = (
    # Who owns the log, and who follows.
    _tested("a refusal is evidence", f"{SHARING}.membership:Member._refused", _never_trusts,
            f"{SHARING_TESTS}/test_shared_log.py::test_a_killed_owner_is_replaced_at_once_because_its_port_refuses"),
    _tested("a refusal is believed once", f"{SHARING}.membership:Member._refused", _always_trusts,
            f"{SHARING_TESTS}/test_membership.py"
            "::test_members_that_refuse_each_other_do_not_fence_each_other_for_ever"),
    _tested("a claim counts before the log is loaded", f"{SHARING}.membership:Member._seek", _forgives_claims,
            f"{SHARING_TESTS}/test_membership.py"
            "::test_members_that_refuse_each_other_do_not_fence_each_other_for_ever"),
    _tested("a loopback address is one network stack's", "kainite.peers.address:OwnerAddress.is_reachable",
            value(property(lambda self: True)),
            f"{SHARING_TESTS}/test_shared_log.py::test_a_loopback_address_of_another_host_is_no_evidence"),
    _tested("generation of an owner that welcomes", f"{SHARING}.conversation:MemberConversation._joined",
            _any_generation, f"{SHARING_TESTS}/test_conversation.py::test_whoever_does_not_own_the_log_is_left"),
    _tested("worker id of a member", f"{SHARING}.reception:Reception._objection", answering(None),
            f"{SHARING_TESTS}/test_shared_log.py::test_who_cannot_append_here_is_told_why"),
    _tested("log's name on a connection", f"{SHARING}.reception:Reception._objection", _any_log,
            f"{SHARING_TESTS}/test_shared_log.py"
            "::test_another_applications_daemon_on_the_owners_port_takes_no_appends"),
    _tested("stream of a member", f"{SHARING}.reception:_other_stream", value(_same_stream),
            f"{SHARING_TESTS}/test_shared_log.py"
            "::test_a_member_of_a_stream_that_replaced_the_logs_own_is_refused_also_by_an_owner_that_knows_none"),
    _tested("stream of the log", "kainite.owner.owner:LogOwner.collect_from", _any_stream,
            "tests/kainite/worker/test_units_of_work.py"
            "::test_a_stream_that_replaced_the_logs_own_is_refused_until_it_is_adopted"),
    # Who is let in, and what a member may append.
    _tested("who connects knows a key", "kainite.peers.connection.introduction:Doorkeeper.judge", _lets_all_in,
            f"{SECURITY_TESTS}/test_strangers.py"
            "::test_who_has_not_read_head_discards_no_shard_and_reads_nothing"),
    _tested("an owner proves itself", "kainite.peers.connection.core:Connection._check_proof", _believes_every_owner,
            f"{SECURITY_TESTS}/test_strangers.py"
            "::test_who_takes_the_port_of_an_owner_that_died_is_told_nothing"),
    _tested("rights of a user", f"{SHARING}.reception:_RIGHTS", value(_NoRightNeeded()),
            f"{SECURITY_TESTS}/test_rights.py::test_each_request_to_the_owner_needs_its_right"),
    _tested("an append follows the shard's position", "kainite.owner.shard_appends:_why_not_next", answering(None),
            f"{SECURITY_TESTS}/test_strangers.py::test_a_jump_is_refused_whoever_makes_it"),
    _tested("lease of an append's shard", f"{SHARING}.lease_holders:LeaseHolders._is_holder", answering(True),
            f"{SHARING_TESTS}/test_lease_holders.py::test_a_holder_is_read_once_and_nobody_else_appends"),
    _tested("a member reports its own shards alone", f"{SHARING}.member_session:MemberSession._of_its_shards",
            value(lambda self, told: dict(told)),
            f"{SECURITY_TESTS}/test_strangers.py::test_a_member_tells_nothing_of_the_shards_of_others"),
    _tested("budget of unfinished messages", "kainite.peers.accepted:AcceptedPeer._make_room", _no_budget,
            f"{SECURITY_TESTS}/test_memory.py"
            "::test_unfinished_messages_of_many_peers_take_one_budget_and_the_others_go_on"),
    # Appends and reports on a connection.
    _tested("appends are decoded in order", f"{SHARING}.member_session:MemberSession._append", _decoded_side_by_side,
            f"{SHARING_TESTS}/test_member_session.py"
            "::test_an_append_may_use_the_scheme_of_a_large_one_that_is_still_being_decoded"),
    _tested("room before decoding", f"{SHARING}.member_session:MemberSession._append", _always_room,
            f"{SHARING_TESTS}/test_member_session.py::test_an_append_is_decoded_only_when_the_log_has_room_for_it"),
    _tested("time of a report under way", f"{SHARING}.member_session:MemberSession._report", _no_time_under_way,
            f"{SHARING_TESTS}/test_shared_log.py::test_the_time_that_a_report_was_under_way_is_added"),
    _tested("age of a report", f"{SHARING}.latest_reading:LatestReading.now", value(_last_report),
            f"{SHARING_TESTS}/test_shared_log.py::test_a_report_that_is_too_old_is_told_no_more"),
    _tested("a request is made again", f"{SHARING}.present_log:PresentLog.ask", _asked_once,
            f"{SHARING_TESTS}/test_shared_log.py"
            "::test_a_log_that_is_gone_before_the_request_has_its_turn_is_waited_for_again"),
    # The shards of a daemon that is cut off.
    _tested("consumers that start keep their lease", "kainite.worker.consumers:Consumers.give_back", _releases_all,
            "tests/kainite/worker/test_consumers.py"
            "::test_a_consumer_that_starts_while_leases_are_given_back_keeps_its_lease_until_it_is_told_to_end"),
    _tested("no consumer without a lease", "kainite.worker.consumers:Consumers.follow_leases", _starts_every_gain,
            "tests/kainite/worker/test_consumers.py"
            "::test_a_lease_that_was_released_before_its_gain_is_heard_gets_no_consumer"),
    _tested("leases between a read shard and a merge", "kainite.leases.shard_sync.create_leases:missing_lines",
            answering({}),
            "tests/kainite/leases/shard_sync/test_create_leases.py"
            "::test_a_merged_child_waits_for_a_parent_whose_own_line_is_still_read"),
    # Applications.
    _tested("a mount waits for what is under way", f"{APPLICATIONS}.partition:ApplicationPartition.flush",
            value(_flushed_at_once),
            f"{APPLICATION_TESTS}/test_service.py"
            "::test_a_mount_is_answered_when_nothing_of_the_client_is_under_way"),
    _tested("nothing is told before it is durable", f"{APPLICATIONS}.partition:ApplicationPartition.reached",
            value(_reached_at_once), f"{APPLICATION_TESTS}/test_service.py::test_nothing_is_told_before_it_is_durable"),
    _tested("a lock failure names what is durable", f"{APPLICATIONS}.service:Applications._refuse",
            value(_refused_at_once), f"{APPLICATION_TESTS}/test_service.py::test_nothing_is_told_before_it_is_durable"),
    _tested("a mount shows appends that the state has", f"{APPLICATIONS}.client:ApplicationLog._fed_behind",
            lambda _: lambda self, mark: mark,
            f"{APPLICATION_TESTS}/test_client.py"
            "::test_an_append_that_another_program_of_the_state_has_applied_is_not_made_again"),
    _tested("the newest connection of a client", f"{APPLICATIONS}.service:Applications._is_newest", answering(True),
            f"{APPLICATION_TESTS}/test_service.py::test_of_two_connections_of_a_client_the_newer_one_stays"),
    _tested("an older connection is cut", f"{APPLICATIONS}.service:Applications._supersede", answering(None),
            f"{APPLICATION_TESTS}/test_service.py::test_of_two_connections_of_a_client_the_newer_one_stays"),
    _tested("locks of an append", f"{APPLICATIONS}.locks:Locks.latest", answering(-1),
            f"{APPLICATION_TESTS}/test_service.py::test_locks"),
    _tested("locks as of the tail", f"{APPLICATIONS}.partition:_read_locks", _no_locks_at_first,
            f"{APPLICATION_TESTS}/test_service.py::test_locks_are_known_to_the_next_owner"),
    _tested("what was decided on is durable", "kainite.owner.append_queue:AppendQueue.flush", value(_flush_skipped),
            "tests/kainite/owner/test_durable_grants.py"
            "::test_an_answer_that_appends_nothing_waits_for_what_it_was_decided_on"),
    # Names and numbers of dispatched units.
    _tested("an owner renews before it begins", "kainite.owner.serving:load_mounted", _begun_without_renewal,
            f"{NAMES_TESTS}::test_an_owner_that_is_overtaken_while_it_loads_deletes_nothing_of_its_successor"),
    _tested("names read back", "kainite.log.state.recent_units:RecentUnits.recall", _recalls_anything,
            f"{NAMES_TESTS}::test_the_last_names_are_known_whatever_crashes_and_no_item_is_left"),
    _tested("number of a unit whose name has left", "kainite.log.state.recent_units:RecentUnits.had",
            value(_nothing_is_old), f"{NAMES_TESTS}::TestSentAgain::test_at_any_time_is_recognised_by_its_number"),
    _tested("number that may have been a unit's", "kainite.log.state.recent_units:RecentUnits.may_have_had",
            value(_nothing_is_old), f"{NAMES_TESTS}::TestSentAgain"
            "::test_beyond_the_window_with_a_number_is_refused_where_numbers_do_not_order"),
    _tested("window of names", "kainite.owner.upkeep:next_move", _no_window,
            f"{NAMES_TESTS}::TestSentAgain::test_long_ago_is_recognised_by_name"),
    _tested("names of a later owner", "kainite.owner.names:deletable", _all_deleted,
            f"{NAMES_TESTS}::test_items_of_a_later_owner_are_not_deleted"),
    _tested("names are in their item first", "kainite.owner.upkeep:LogUpkeep._move", value(_entry_alone),
            f"{NAMES_TESTS}::TestSentAgain::test_long_ago_is_recognised_by_name"),
    _tested("names move", "kainite.owner.upkeep:LogUpkeep._move_names", value(_nothing_moves),
            f"{NAMES_TESTS}::TestSentAgain::test_long_ago_is_recognised_by_name"),
    _tested("a copy of a numbered unit is taken out", "kainite.log.collecting.collect:_drop_copy", answering(None),
            "tests/kainite/log/collecting/test_collect.py::TestCopiesOfUnitsWhoseNamesHaveLeft"
            "::test_one_in_parts_is_discarded_when_its_end_comes"),
    _tested("a unit whose correction may be applied is not retried", "kainite.owner.requests:correction_of",
            answering(None), "tests/kainite/owner/test_requests.py"
            "::test_a_unit_whose_correction_may_be_applied_is_not_retried_before_that_has_failed"),
    _tested("a correction replaces only a unit of which it writes a row", "kainite.log.state.corrections:share_a_row",
            value(conflict), f"{BACKLOG_TESTS}::test_a_correction_replaces_no_unit_of_which_it_writes_no_certain_row"),
    _tested("a correction replaces nothing that was signed by other rules", "kainite.log.state.corrections:replaces",
            _by_any_rules, f"{BACKLOG_TESTS}::test_a_correction_replaces_no_unit_of_which_it_writes_no_certain_row"),
    _tested("a correction discards with skip, too", "kainite_spark.plan.passing:Passing.begin", answering(None),
            f"{BACKLOG_TESTS}"
            "::test_with_skip_a_correction_discards_the_failed_unit_that_it_replaces_and_names_those_that_it_may_touch"),
    _tested("a key that stands for several rows is no row", "kainite.uow.touched.key:_row_digest", value(_any_row),
            "tests/kainite/uow/test_signature.py::test_what_several_rows_may_have_says_so_too"),
    # Units without ends.
    _tested("arrivals of open units after a mount", "kainite.log.collecting.watermark:Watermark.learn", answering(None),
            f"{WATERMARK_TESTS}::TestAnOwner"
            "::test_releases_what_a_former_owner_collected_though_no_more_records_come"),
    _tested("clocks drift", "kainite.log.collecting.watermark:Watermark._ahead_when", value(_without_drift),
            f"{WATERMARK_TESTS}::TestTheWatermark::test_a_clock_that_runs_ahead_of_kinesis_takes_it_nowhere"),
    _tested("an event was surely waited for", "kainite.kinesis.read.pushed_events:SURELY_WAITED_S", value(0.0),
            "tests/kainite/kinesis/read/test_fan_out.py"
            "::test_an_event_that_may_have_lain_in_a_buffer_tells_no_tip"),
    _tested("not every mark is a tip", "kainite.kinesis.read.prefetch:Prefetch.mark", _tip_at_once,
            "tests/kainite/kinesis/read/test_prefetch.py"
            "::test_only_a_mark_at_the_tip_is_one_and_a_later_mark_that_is_none_takes_nothing_back"),
    _tested("hash keys without a lease", "kainite.leases.streams:first_hole", answering(None),
            "tests/kainite/leases/test_keeper.py"
            "::test_shards_to_be_read_are_known_while_their_leases_leave_no_hash_key_uncovered"),
    _tested("a unit of which more came is judged again", "kainite.owner.answering:unit_asked", _never_grown,
            f"{WATERMARK_TESTS}::TestAnOwner"
            "::test_refuses_a_retry_of_a_late_unit_of_which_more_came_while_it_was_judged"),
    _tested("units under way when reading began", "kainite.log.collecting.watermark:may_be_torn", answering(False),
            f"{WATERMARK_TESTS}::TestAShardThatIsNotReadFromItsBeginning"
            "::test_fails_units_that_were_under_way_then"),
    _tested("a record that comes after the beginning may have an earlier arrival", "kainite.worker.beginning:MARGIN_S",
            value(0.0), "tests/kainite/worker/test_shard_call.py"
            "::test_reading_begins_where_the_log_does_and_that_is_durable_before"),
    # What children emit.
    _tested("one shard is overdrawn", "kainite.worker.emit_budget:EmitBudget._admit", _nobody_overdrawn,
            "tests/kainite/worker/test_emit_budget.py"
            "::test_many_shards_that_emit_more_than_the_limit_all_end_their_calls"),
    _tested("only one shard is overdrawn", "kainite.worker.emit_budget:EmitBudget.__init__", _without_limit,
            "tests/kainite/worker/test_emit_budget.py"
            "::test_many_shards_that_emit_more_than_the_limit_all_end_their_calls"),
    _tested("a child that hangs is passed over", "kainite.worker.emit_budget:EmitBudget.__init__",
            _endless_patience,
            "tests/kainite/worker/test_emit_budget.py::test_a_child_that_hangs_does_not_keep_the_others_for_ever"),
    _tested("no patience runs while the log takes nothing", "kainite.worker.emit_budget:EmitShare",
            _patience_runs,
            "tests/kainite/worker/test_emit_budget.py::test_while_the_log_takes_nothing_only_one_shard_is_overdrawn"),
    # The order of units that are tried out of their turn.
    _tested("delayed or refused waits for earlier",
            "kainite_spark.plan.waiting_units:WaitingUnits._waits_behind_another", answering(False),
            "tests/kainite_spark/plan/test_backlog.py"
            "::test_a_unit_that_was_not_tried_a_second_time_waits_for_those_before_it_that_were_found_blocked"),
    # Changes of a row that are made as one.
    _tested("signatures of a unit that lost a change", f"{NET_EFFECT}:_Signing.without", _signed_by_what_is_left,
            f"{NET_EFFECT_TESTS}::test_signatures_of_another_catalogue_stay_when_they_cannot_be_told_apart"),
    _tested("values that are dropped", f"{NET_EFFECT}:_FoldRules._droppable", answering(True),
            f"{NET_EFFECT_TESTS}::test_two_changes_stay_two"),
    _tested("a cascade ends a fold", f"{NET_EFFECT}:_TableFolding.of", _never_acts,
            f"{NET_EFFECT_TESTS}::test_what_may_touch_the_row_in_between_ends_the_fold"),
    # A target that went back.
    _tested("target compared with the log", "kainite_spark.targets.sqlite.target:check_mark", answering(None),
            f"{WENT_BACK_TESTS}::test_every_earlier_state_that_lacks_a_committed_unit_is_refused_and_no_other"),
    _tested("units of the mark's micro-batch", "kainite_spark.targets.sqlite.target:check_mark", _only_the_fence,
            f"{WENT_BACK_TESTS}::test_every_earlier_state_that_lacks_a_committed_unit_is_refused_and_no_other"),
    _tested("latest mark stays", "kainite_spark.driver.outcomes:Outcomes.truncate", _marks_go,
            "tests/kainite_spark/driver/test_outcomes.py::test_the_latest_mark_is_read_back_and_never_truncated"),
    _tested("a trigger ends a fold", f"{STATEMENTS}.planner:Planner._firing", _fires_nothing,
            f"{TRIGGER_TESTS}::test_no_change_is_folded_past_a_trigger_on_another_table"),
    _tested("a trigger that comes later is seen", f"{FIRING_HOOKS}:KnownHooks.changed", answering(False),
            f"{TRIGGER_TESTS}::test_a_trigger_that_comes_later_stops_the_job_before_it_changes_anything"),
    _tested("triggers are refused", "kainite_spark.targets.hooks:HookPolicy.unwanted", answering([]),
            f"{TRIGGER_TESTS}::test_triggers_are_refused_at_the_start_and_named_with_what_they_do"),
    _tested("triggers of what a cut-over handed over are not fired unmeant", f"{FIRING_HOOKS}:KnownHooks.check",
            answering(None), "tests/kainite_spark/load/test_cutover.py"
            "::test_a_cut_over_leaves_the_apply_job_of_another_log_in_the_same_database_at_work"),
    # A MariaDB source that is compared, or handed over.
    _tested("a write behind a cut-over's point is seen", "kainite.replicate.binlog_watch:QuietBinlog.look",
            answering(None),
            "tests/kainite/replicate/test_binlog_watch.py::test_a_change_is_told_with_its_transaction"),
    _tested("no snapshot lacks what was read of the binlog", "kainite.capture.mysql.place:BinlogPlace.is_before",
            answering(False), "tests/kainite/capture/mysql/test_same_place.py"
            "::test_all_begin_again_until_they_are_at_one_place_that_is_not_too_early"),
    _tested("who gives a value up comes first", f"{STATEMENTS}.steps:Stepper.in_order", _as_it_came,
            f"{CONFORMANCE}/test_unnumbered_units.py::test_a_row_makes_room_for_another_in_each_order_of_arrival"),
    _tested("a cascade that the source tells is met", f"{STATEMENTS}.steps:Stepper.cascaded", answering([]),
            f"{CONFORMANCE}/test_cascades_that_the_source_tells.py::test_two_tables_in_a_cycle"),
    _tested("only a cascade takes a row along", "kainite.uow.touched.plan:TablePlan.takers", _any_action_takes,
            f"{CONFORMANCE}/test_cascades_that_the_source_tells.py"
            "::test_a_row_that_another_foreign_keys_cascade_passes_by_must_be_there"),
    # Values of all types, and what a source lists of its own actions.
    _tested("the source's session sets what texts depend on",
            "kainite.capture.postgresql.replication_connection:_OPTIONS", value(""),
            "tests/end_to_end/test_types.py::test_every_type"),
    _tested("a parent that is gone is not named", f"{AFTER_ACTIONS}:_Later.left_out", answering(frozenset()),
            f"{AFTER_ACTIONS_TESTS}::test_an_image_in_the_middle_of_the_actions_does_not_name_the_parent_that_is_gone"),
    _tested("only a row that goes may be missing", f"{AFTER_ACTIONS}:_Later.deleted", answering(True),
            f"{AFTER_ACTIONS_TESTS}::test_a_row_that_the_unit_deletes_in_the_end_may_be_missing"),
    _tested("a value that a row has again is not gone", f"{AFTER_ACTIONS}:_Gone.give", answering(None),
            f"{AFTER_ACTIONS_TESTS}::test_values_whose_equality_is_not_known_are_gone_as_they_are_spelled"),
    _tested("deletes whose actions may meet stay apart", f"{STATEMENTS}.steps:Stepper.commute", answering(True),
            "tests/kainite_spark/targets/statements/test_planner.py"
            "::test_deletes_whose_actions_may_meet_in_one_row_are_no_run"),
    *(
        ShownByTest(mutation, test)
        for mutation, test in (
            *tested_short_ways.OFF, *tested_collecting.OFF, *tested_extract.OFF, *tested_duties.OFF, *tested_edges.OFF,
            *tested_leases.OFF, *tested_mariadb_loads.OFF,
        )
    ),
)  # fmt: skip
