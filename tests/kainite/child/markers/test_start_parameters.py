from __future__ import annotations

from dataclasses import replace

from kainite.base.markers import Batching
from kainite.child.markers.start_parameters import start_parameters
from kainite.settings import MarkersSettings


def test_a_worker_is_told_by_its_environment() -> None:
    arguments, environment = start_parameters(replace(MarkersSettings(), batching=Batching.WORKER, batch_size=7))
    assert arguments == ()
    assert environment == {
        "KAINITE_EOM": "\\n",
        "KAINITE_EOP": "\\x00",
        "KAINITE_EOB": "\\x17",
        "KAINITE_BNC": "\\x06",
        "KAINITE_BATCHING": "worker",
        "KAINITE_BATCH_SIZE": "7",
    }


def test_a_worker_is_told_as_the_templates_say() -> None:
    settings = replace(
        MarkersSettings(eop=b"EOP"),
        arguments=("-e", "{eom}", '-E={eop}{"a":1}'),
        environment=(("X", "{bnc}-{batch_size}"),),
    )
    assert start_parameters(settings) == (("-e", "\\n", '-E=EOP{"a":1}'), {"X": "\\x06-100"})
