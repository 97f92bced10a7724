"""The serialization log as a service: the log partition's owner answers over TCP.

``wire`` has the protocol as a codec without I/O, :mod:`~kainite.peers.server` the sockets, ``applications`` what
programs use. docs/architecture.md has the rooms. The package imports the other packages of ``log``, ``settings`` and
``base``.
"""
