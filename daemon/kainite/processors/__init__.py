"""What the record processors that ship have in common; see ``record_processors/``. Needs ``kainite[processors]``."""
