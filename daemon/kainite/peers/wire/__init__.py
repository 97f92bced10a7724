"""The protocol of the log's service as bytes; no I/O, no clock.

======================================  =====================================================================
:mod:`~kainite.peers.wire.frames`     frames: a header with a length, and a body; the incremental decoder
:mod:`~kainite.peers.wire.fields`     numbers, arrays and strings in a body, each length checked
:mod:`~kainite.peers.wire.hello`      the first frame of each side, and the version that both speak
:mod:`~kainite.peers.wire.messages`   the messages of versions 0 to 4
:mod:`~kainite.peers.wire.shard_messages`   the messages of version 6 by which daemons append
:mod:`~kainite.peers.wire.feed_messages`    those by which the apply job follows
:mod:`~kainite.peers.wire.row_messages`     those by which anybody asks who holds a row
:mod:`~kainite.peers.wire.layouts`    each message's fields as bytes
:mod:`~kainite.peers.wire.versions`   which messages a version has; a new version is a new line there
======================================  =====================================================================

Versions 0 to 4 are Waltz's, byte for byte; version 6 is Kainite's own.
"""
