"""How the daemons of an application share one log partition: one owns it, the others append through it.

==========================================================  ========================================================
:mod:`~kainite.peers.sharing.shared_log`              the log as a daemon's shards see it; begin here
:mod:`~kainite.peers.sharing.membership`              who owns and who follows, as a state machine
:mod:`~kainite.peers.sharing.conversation`            the client's side of a connection, without I/O
:mod:`~kainite.peers.sharing.connection`              its shell
:mod:`~kainite.peers.sharing.session`                 the owner's side of a connection
:mod:`~kainite.peers.sharing.following`               the apply job's connection, which brings what is durable
:mod:`~kainite.peers.sharing.asking`                  the question who holds a row
:mod:`~kainite.peers.sharing.fragments`               fragments as bytes
:mod:`~kainite.peers.sharing.address`                 where an owner is reached, and by whom
:mod:`~kainite.peers.sharing.network`                 sockets
==========================================================  ========================================================

The messages are version 6 of the protocol: :mod:`kainite.peers.wire.shard_messages`.
"""
