"""Who is given a duty: the vectors of the load balancer that the rule comes from, and what it leaves to the records."""

from __future__ import annotations

import pytest

from kainite.fleet.model.assignment import assignments, choose, why_not
from kainite.fleet.model.records import Duty, Picture, Work, Worker
from kainite.fleet.model.states import DutyStatus, WorkerStatus


def sequence(loads: dict[str, float], affinity: tuple[str, ...], weights: list[float]) -> str:
    """Returns the workers that are chosen one after the other, by the last character of their names."""
    workers = [Worker(name, "1") for name in loads]
    chosen = ""
    for weight in weights:
        worker = choose(Duty("d", Work(weight=weight, affinity=affinity)), workers, loads)
        assert worker is not None
        loads[worker.name] += weight
        chosen += worker.name[-1]
    return chosen


@pytest.mark.parametrize(
    ("loads", "affinity", "weights", "chosen"),
    [
        ((1, 1), (), [1] * 10, "1212121212"),
        ((4, 1), (), [1] * 9, "222121212"),
        ((1, 4), (), [1] * 9, "111121212"),
        ((1, 1, 1), (), [1] * 9, "123123123"),
        ((4, 1, 1), (), [1] * 9, "232323123"),
        ((1, 4, 1), (), [1] * 9, "131313123"),
        ((1, 1, 4), (), [1] * 9, "121212123"),
        ((0, 0), ("w1",), [1] * 12, "111112111112"),
        ((3, 0), ("w1",), [1] * 9, "112111112"),
        ((0, 1), ("w1",), [1] * 11, "11111111112"),
        ((0, 0, 0), ("w1",), [1] * 14, "11111231111123"),
        ((4, 0, 0), ("w1",), [1] * 10, "1231111123"),
        ((0, 1, 0), ("w1",), [1] * 13, "1111131111123"),
        ((0, 0), (), [2, 1, 1, 1, 2, 1, 1, 2], "12212112"),
        ((1, 0), (), [2, 1, 1, 1, 2, 1, 1, 1], "21121221"),
        ((0, 0), ("w1",), [1, 4, 2, 1, 7, 1, 1, 1, 1, 1, 5, 1], "111212121112"),
    ],
)  # fmt: skip
def test_the_reference_chooses_the_same(
    loads: tuple[float, ...], affinity: tuple[str, ...], weights: list[float], chosen: str
) -> None:
    named = {f"w{place}": load for place, load in enumerate(loads, start=1)}
    assert sequence(named, affinity, weights) == chosen


def fleet(*workers: Worker) -> dict[str, Worker]:
    return {worker.name: worker for worker in workers}


def test_a_burst_is_spread_because_what_waits_is_load() -> None:
    duties = {f"d{n}": Duty(f"d{n}", Work()) for n in range(100)}
    workers = fleet(*(Worker(f"w{n}", "1") for n in range(5)))
    given = assignments(Picture(workers, duties))
    counts = {name: sum(each.worker.name == name for each in given) for name in workers}
    assert set(counts.values()) == {20}


def test_what_waits_at_a_worker_counts_before_it_runs() -> None:
    workers = fleet(Worker("a", "1"), Worker("b", "1"))
    duties = {"waiting": Duty("waiting", Work()).given_to(workers["a"]), "new": Duty("new", Work())}
    assert [given.worker.name for given in assignments(Picture(workers, duties))] == ["b"]


def test_a_label_attracts_as_a_name_does() -> None:
    workers = fleet(Worker("a", "1"), Worker("b", "1", labels=("fast",)))
    [given] = assignments(Picture(workers, {"d": Duty("d", Work(affinity=("fast", "unknown")))}))
    assert given.worker.name == "b"


@pytest.mark.parametrize("status", [status for status in WorkerStatus if status is not WorkerStatus.ALIVE])
def test_only_workers_that_are_alive_are_given_duties(status: WorkerStatus) -> None:
    assert assignments(Picture(fleet(Worker("a", "1", status)), {"d": Duty("d", Work())})) == ()


def test_an_unknown_kind_and_a_full_worker_are_passed_by() -> None:
    workers = fleet(Worker("a", "1", capacity=2), Worker("b", "1", kinds=("new",)))
    duties = {"heavy": Duty("heavy", Work(weight=3)), "new": Duty("new", Work(kind="new")), "ok": Duty("ok", Work())}
    given = {each.duty.name: each.worker.name for each in assignments(Picture(workers, duties))}
    assert given == {"new": "b", "ok": "a"}


def test_what_nobody_wants_is_not_given_out() -> None:
    duties = {
        "off": Duty("off", Work(), enabled=False),
        "halted": Duty("halted", Work(), halted=True),
        "done": Duty("done", Work(), DutyStatus.STOPPED),
        "broken": Duty("broken", Work(), DutyStatus.ERROR),
    }
    assert assignments(Picture(fleet(Worker("a", "1")), duties)) == ()


def test_a_duty_on_its_way_goes_to_its_goal_or_to_another_that_lives() -> None:
    workers = fleet(Worker("a", "1"), Worker("b", "1"))
    duties = {"d": Duty("d", Work(), goal="b"), "e": Duty("e", Work(), goal="gone")}
    given = {each.duty.name: each.worker.name for each in assignments(Picture(workers, duties))}
    assert given == {"d": "b", "e": "a"}


def test_a_duty_goes_to_a_worker_whose_host_declares_it_or_allows_its_command() -> None:
    declares, allows = Worker("a", "1", declared=("d",)), Worker("b", "1", declared=(), allowed=("sleep 1",))
    duty = Duty("d", Work(command=("sleep", "1")))
    for workers in ([declares], [allows]):
        assert choose(duty, workers, {"a": 0.0, "b": 0.0}) is workers[0]
    strange = Duty("e", Work(command=("sleep", "2")))
    assert choose(strange, [declares, allows], {"a": 0.0, "b": 0.0}) is None
    assert "fleetCommands there does not list its command" in (why_not(strange, allows, 0.0) or "")
