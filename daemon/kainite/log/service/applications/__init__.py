"""The log for applications: transactions with locks, fed to clients in one order. Versions 0 to 4 of the protocol.

=======================================================  ============================================================
:mod:`~kainite.log.service.applications.locks`           which transaction last raised a lock
:mod:`~kainite.log.service.applications.partition`       a log partition of transactions, while this process owns it
:mod:`~kainite.log.service.applications.reading`         what is durable of it: recent from memory, or the store
:mod:`~kainite.log.service.applications.feed`            one client's feed, by credit
:mod:`~kainite.log.service.applications.service`         messages to partitions and feeds
:mod:`~kainite.log.service.applications.owning`          mounts partitions, and mounts them again
:mod:`~kainite.log.service.applications.context`         what a program writes: its state, its transactions
:mod:`~kainite.log.service.applications.connecting`      finds a partition's owner
:mod:`~kainite.log.service.applications.client`          a program's side; its connection is ``link``, its appends
                                                         under way ``monitor``, the hashes of its locks ``lock_hash``
=======================================================  ============================================================

Begin with the partition at the owner, with the context at a program.
"""
