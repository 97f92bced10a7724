"""``python -m kainite`` is ``kainite``."""

from kainite.cli import main

main(prog_name="kainite")
