"""How old signs of life are."""

from __future__ import annotations

from kainite.fleet.model.records import Lead, Picture, Worker
from kainite.fleet.steps.observer import FleetLook, Observer

WORKER = Worker("w", "1", version="v")


def test_a_sign_of_life_is_as_young_as_the_reads_that_showed_it_allow() -> None:
    observer, picture = Observer(6.0), Picture({"w": WORKER}, lead=Lead("w", "1", 1, "v"))
    observer.see(FleetLook(picture, began=0.0, ended=60.0))
    observer.see(FleetLook(picture, began=61.0, ended=200.0))
    assert (observer.silence_of(WORKER), observer.silence_of_leader()) == (1.0, 1.0)
    assert (observer.end_of_silence(WORKER, 5.0), observer.end_of_leaders_silence(5.0)) == (65.0, 65.0)


def test_after_a_change_of_leader_nobody_counts_as_silent_for_longer_than_the_time_out() -> None:
    observer = Observer(6.0)
    observer.see(FleetLook(Picture({"w": WORKER}, lead=Lead("w", "1", 1, "v")), began=0.0, ended=1.0))
    observer.see(FleetLook(Picture({"w": WORKER}, lead=Lead("w", "1", 1, "v")), began=20.0, ended=21.0))
    assert observer.silence_of(WORKER) == 19.0
    observer.see(FleetLook(Picture({"w": WORKER}, lead=Lead("x", "1", 2, "v")), began=22.0, ended=23.0))
    assert observer.end_of_silence(WORKER, 0.0) == 23.0 - 6.0
