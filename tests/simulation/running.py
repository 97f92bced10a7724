"""Runs seeds: of the daemon and the apply job, of programs on the log, of loads, or of an extraction."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

from simulation.extract_world import ExtractWorld
from simulation.load_world import LoadWorld
from simulation.plan import Scenario
from simulation.program_world import ProgramWorld
from simulation.scenario import scenario
from simulation.two_logs import TwoLogs
from simulation.world import Verdict, World


def run_seed(seed: int, left_out: Collection[str] = (), aim: str = "") -> Verdict:
    """Runs a seed's scenario, without the faults that are left out; with an aim in that variant."""
    return replace(run_scenario(scenario(seed, aim), left_out), aim=aim)


def run_scenario(plan: Scenario, left_out: Collection[str] = ()) -> Verdict:
    if plan.more.programs is not None:
        return ProgramWorld(plan, left_out).run()
    if plan.more.loads:
        return LoadWorld(plan, left_out).run()
    folder = Path(tempfile.mkdtemp(prefix="kainite-sim-", dir="/dev/shm" if Path("/dev/shm").is_dir() else None))
    try:
        if plan.more.extraction is not None:
            return ExtractWorld(plan, folder, left_out).run()
        if plan.more.two_logs is not None:
            return TwoLogs(plan, folder, left_out).run()
        return World(plan, folder, left_out).run()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
