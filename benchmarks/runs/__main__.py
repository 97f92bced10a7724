"""Records benchmarks, compares two commits by one, or makes a table of recorded runs.

make bench BENCHMARKS="benchmarks/log_codec.py benchmarks/apply.py"
make bench-compare BENCHMARK=benchmarks/log_codec.py BEFORE=v1 AFTER=main TURNS=6 WITH="--units 2000"
make bench-table
"""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from dataclasses import asdict
from pathlib import Path

from runs.comparing import compare, table
from runs.figures import LEAST_TURNS
from runs.headlines import headline_table
from runs.recording import ROOT, BenchmarkError, read, record

FOLDER = ROOT / "benchmarks" / "recorded"


def main() -> None:
    options = _parser().parse_args()
    try:
        if options.command == "record":
            file = record(options.benchmarks, options.folder)
            print(f"recorded in {file}", file=sys.stderr)
        elif options.command == "table":
            print(headline_table([read(file) for file in options.files or sorted(FOLDER.glob("*.json"))]))
        else:
            _compare(options)
    except BenchmarkError as error:
        raise SystemExit(f"error: {error}") from None
    except KeyboardInterrupt:
        raise SystemExit(130) from None


def _compare(options: argparse.Namespace) -> None:
    given = shlex.split(options.given)
    found = compare(options.before, options.after, options.benchmark, given, options.turns)
    print(json.dumps([asdict(each) | {"real": each.is_real} for each in found]) if options.json else table(found))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    recording = commands.add_parser("record", help="run benchmarks, print their figures, keep them in a JSON file")
    recording.add_argument("benchmarks", type=Path, nargs="+", help="the benchmarks' files")
    recording.add_argument("--folder", type=Path, default=FOLDER, help="gets the file (default: benchmarks/recorded)")
    tabling = commands.add_parser(
        "table", help="print the chief figures of recorded runs as a table, a column a commit"
    )
    tabling.add_argument("files", type=Path, nargs="*", help="files of recorded runs (default: all recorded here)")
    comparing = commands.add_parser("compare", help="measure one benchmark at two commits, in turns")
    comparing.add_argument("before", help="a commit, as git names it")
    comparing.add_argument("after", help="another one")
    comparing.add_argument("benchmark", type=Path, help="the benchmark's file, relative to the repository")
    comparing.add_argument(
        "--turns", type=_turns, default=LEAST_TURNS, help=f"{LEAST_TURNS} to 16 (default: %(default)s)"
    )
    comparing.add_argument("--given", default="", help="what the benchmark is given, in one text")
    comparing.add_argument("--json", action="store_true", help="print JSON")
    return parser


def _turns(text: str) -> int:
    turns = int(text)
    if not LEAST_TURNS <= turns <= 16:
        raise argparse.ArgumentTypeError(f"{turns} turns: take {LEAST_TURNS} to 16; fewer cannot show a difference")
    return turns


if __name__ == "__main__":
    main()
