"""A run that breaks off: nothing is left of it. Whole runs are in ``tests/end_to_end/test_demo.py``."""

from __future__ import annotations

import io
import socket
from pathlib import Path

import pytest
from rich.console import Console

from kainite.base.errors import DemoError
from kainite_demo.progress import Display
from kainite_demo.run_layout import RunOptions
from kainite_demo.scenario import run


@pytest.mark.parametrize("keep", [False, True])
def test_a_run_without_kinesis_leaves_its_folder_only_when_it_is_to_be_kept(
    keep: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with socket.create_server(("127.0.0.1", 0)) as server:
        endpoint = f"http://127.0.0.1:{server.getsockname()[1]}"
    said = io.StringIO()
    options = RunOptions(
        seconds=1, shards=1, clients=1, scale=1, rate=1, seed=1, kill=False, keep=keep, endpoint=endpoint
    )

    with pytest.raises(DemoError, match="no Kinesis at"):
        run(options, Display(Console(file=said, width=500)))

    assert len(list(tmp_path.iterdir())) == keep
    assert (f"kept: {tmp_path}" in said.getvalue()) is keep
