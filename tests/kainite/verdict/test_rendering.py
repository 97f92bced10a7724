"""A verdict as a person and as a script read it."""

from __future__ import annotations

import json

import orjson

from kainite.fleet.model.records import Duty, Picture, Work, Worker
from kainite.fleet.model.states import DutyStatus
from kainite.leases.administration.report import ShardState
from kainite.verdict.facts import Facts, FleetFacts, LeaseFacts
from kainite.verdict.judging import judge
from kainite.verdict.rendering import MOST_SHARDS, as_json, lines
from support.verdicts import daemon, figure, log, row, summary, told, well

FAILED = figure("T-5", 5, "failed", cause="violates a check", holder="job instance 3")


def spoilt() -> Facts:
    figures = summary(failed=1, blocked=2, oldest=FAILED, first_failed=FAILED)
    return well(log=log(summary=figures), daemons=(daemon(told("hung", why="it hangs", stderr="boom")),))


def test_the_worst_comes_first_then_the_next_step() -> None:
    shown = lines(judge(spoilt()))
    assert shown[0].startswith("app: broken: shards: shardId-000000000000 (held by w): it hangs")
    assert shown[0].endswith("(2 more below)")
    assert shown[1].startswith("next: see the child's standard error")


def test_the_text_has_lag_units_oldest_and_shards() -> None:
    text = "\n".join(lines(judge(spoilt())))
    assert "lag: 12 s, from the source's commit" in text
    assert "  apply       12 s  3 units" in text
    assert "units: 0 collecting, 0 in progress, 0 delayed, 2 blocked, 1 failed, 0 discarding" in text
    assert "oldest that is not committed: T-5 (id 5): violates a check; failed; 12 s old; job instance 3" in text
    assert "✗ shardId-000000000000; hung; w; it hangs; standard error: boom" in text


def test_of_an_application_without_trouble_the_first_line_says_so() -> None:
    shown = lines(judge(well()))
    assert shown[:2] == ["app: healthy", ""]
    assert not [line for line in shown if "→" in line]


def test_of_many_shards_the_worst_are_shown() -> None:
    rows = tuple(row(f"s-{number:03}") for number in range(50))
    bad = row("s-999", ShardState.UNOWNED, owner=None)
    shown = lines(judge(well(leases=LeaseFacts((*rows, bad)))))
    at = shown.index("shards: 51")
    assert "s-999" in shown[at + 1]
    assert len(shown[at + 1 :]) == MOST_SHARDS + 1
    assert shown[-1] == f"  and {51 - MOST_SHARDS} more"


def test_json_has_everything_and_can_be_written() -> None:
    picture = Picture(
        workers={"w": Worker("w", "i")}, duties={"apply": Duty("apply", Work("apply"), DutyStatus.ERROR, error="why")}
    )
    facts = well(**{name: getattr(spoilt(), name) for name in ("log", "daemons")}, fleet=FleetFacts(picture))
    told = json.loads(orjson.dumps(as_json(judge(facts))))
    assert (told["verdict"], told["exit_status"]) == ("broken", 2)
    assert told["units"]["blocked"] == 2
    assert told["oldest"]["uow"] == "T-5"
    assert told["oldest"]["age_seconds"] == 12.0
    assert [stage["stage"] for stage in told["lag"]["stages"]] == ["source", "stream", "collect", "log", "apply"]
    assert told["shards"][0]["stderr"] == "boom"
    assert told["duties"] == [{"duty": "apply", "status": "error", "worker": "", "wanted": True, "error": "why"}]
    assert told["workers"] == [{"worker": "w", "status": "alive", "leads": False}]
    assert {"name", "level", "cause", "remedy"} == set(told["checks"][0])


def test_json_without_a_log_has_the_same_keys() -> None:
    assert set(as_json(judge(well(log=None)))) == set(as_json(judge(well())))
