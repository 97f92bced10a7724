"""Reads from a settings file which source and which target it connects, whatever kind of database the source is."""

from __future__ import annotations

from kainite.replicate.binlog_ends import BinlogEnds, binlog_ends_of, has_binlog_source
from kainite.replicate.configured_ends import ends_of
from kainite.replicate.ends import ReplicaEnds
from kainite.settings import Settings


def any_ends_of(configured: Settings) -> ReplicaEnds | BinlogEnds:
    """Returns the two databases that a settings file connects.

    Args:
        configured: the settings file.

    Raises:
        SettingsError: as :func:`~kainite.replicate.configured_ends.ends_of` and
            :func:`~kainite.replicate.binlog_ends.binlog_ends_of`.
    """
    if has_binlog_source(configured):
        return binlog_ends_of(configured)
    return ends_of(configured)
