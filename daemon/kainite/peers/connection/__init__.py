"""One side of a connection between Kainite's processes, or between a program and the log's owner; no I/O, no clock.

==================================================  ===============================================================
:mod:`~kainite.peers.connection.core`               the states of a connection, for both sides; begin here
:mod:`~kainite.peers.connection.codec`              a protocol's messages as bytes: the interface for the core
:mod:`~kainite.peers.connection.frames`             frames: a header with a length, and a body
:mod:`~kainite.peers.connection.fields`             numbers, arrays and strings in a body, each length checked
:mod:`~kainite.peers.connection.hello`              the first frame of each side, and the version that both speak
:mod:`~kainite.peers.connection.introduction`       how both sides prove that they know the same key
:mod:`~kainite.peers.connection.credit`             how much may be under way
:mod:`~kainite.peers.connection.generation`         whether the peer is the owner that was looked for
==================================================  ===============================================================

Two protocols run on it, each on a port of its own: that of the peers (:mod:`kainite.peers.messages`) and Waltz's
versions 0 to 4 for applications (:mod:`kainite.waltz.wire`). The shells with sockets are
:mod:`kainite.peers.server` and :mod:`kainite.peers.client`.
"""
