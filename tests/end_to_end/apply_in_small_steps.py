"""``kainite apply`` with small micro-batches and target transactions: ``apply_in_small_steps.py SETTINGS UNITS GROUP``.

A micro-batch has at most UNITS units, a target transaction at most GROUP; ``--once`` behind them ends the job when it
has caught up. At the end the job's summary is printed as a JSON object. Everything else is the command.
"""

from __future__ import annotations

import json
import sys
from dataclasses import replace

from kainite.settings import load
from kainite_spark.cli import run


def main(path: str, max_units: str, group_units: str, *options: str) -> None:
    settings = load(path, needs=("applicationName",))
    apply = replace(settings.apply, max_units=int(max_units), group_units=int(group_units))
    summary = run(replace(settings, apply=apply), once="--once" in options)
    print(json.dumps({status.value: count for status, count in summary.outcomes.items()}))


if __name__ == "__main__":
    main(*sys.argv[1:])
