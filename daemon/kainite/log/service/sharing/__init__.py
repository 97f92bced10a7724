"""How the daemons of an application share one log partition: one owns it, the others append through it.

==========================================================  ========================================================
:mod:`~kainite.log.service.sharing.shared_log`              the log as a daemon's shards see it; begin here
:mod:`~kainite.log.service.sharing.membership`              who owns and who follows, as a state machine
:mod:`~kainite.log.service.sharing.conversation`            the client's side of a connection, without I/O
:mod:`~kainite.log.service.sharing.connection`              its shell
:mod:`~kainite.log.service.sharing.session`                 the owner's side of a connection
:mod:`~kainite.log.service.sharing.following`               the apply job's connection, which brings what is durable
:mod:`~kainite.log.service.sharing.asking`                  the question who holds a row
:mod:`~kainite.log.service.sharing.fragments`               fragments as bytes
:mod:`~kainite.log.service.sharing.address`                 where an owner is reached, and by whom
:mod:`~kainite.log.service.sharing.network`                 sockets
==========================================================  ========================================================

The messages are version 6 of the protocol: :mod:`kainite.log.service.wire.shard_messages`.
"""
