from __future__ import annotations

from kainite.base.markers import Batching
from kainite.settings import ApplySettings, MarkersSettings
from kainite.settings.loader_markers import loader_markers


def test_a_loader_has_the_childrens_markers_and_its_own_batches() -> None:
    children = MarkersSettings(eom=b"|", eop=b"!", arguments=("-x",))
    found = loader_markers(ApplySettings(loader_batching=Batching.WORKER), children)
    assert (found.eom, found.eop, found.batching, found.batch_size) == (b"|", b"!", Batching.WORKER, 100)
    assert found.arguments == ("-x",)
