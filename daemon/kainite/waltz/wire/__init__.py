"""Waltz's protocol, versions 0 to 4, byte for byte; no I/O, no clock.

=========================================  ========================================================================
:mod:`~kainite.waltz.wire.messages`        the messages
:mod:`~kainite.waltz.wire.layouts`         each message's fields as bytes
:mod:`~kainite.waltz.wire.versions`        which messages a version has; the codec of the connection core
=========================================  ========================================================================

Frames and the Hello are those of :mod:`kainite.peers.connection`.
"""
