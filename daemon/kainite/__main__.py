"""``python -m kainite`` is ``kainite``."""

from kainite.cli.main import main

main(prog_name="kainite")
