"""Runs seeds: ``python -m simulation [--first N] [--seeds N] [--jobs N]``; see tests/README.md, *The simulator*."""

from __future__ import annotations

import sys

from simulation.command import main

sys.exit(main())
