"""A kind of target of the tests' own: a SQLite file under another address. Nothing outside this folder knows of it.

``KIND`` is its line in the list of kinds.
"""

from __future__ import annotations

from kainite.settings.kinds.target_kinds import TargetKind

KIND = TargetKind(
    name="shelf",
    prefixes=("shelf:",),
    example="shelf:FILE",
    address="support.made_up_kind.address:ADDRESS",
    opener="support.made_up_kind.opening:OPENER",
    catalogue="support.made_up_kind.catalogue:reading",
    extra="shelf",
    packages=("shelf_driver",),
)
