"""How the daemons of an application share one log partition: one owns it, the others append through it.

==========================================================  ========================================================
:mod:`~kainite.peers.sharing.shared_log`                    the log as a daemon's shards see it; begin here
:mod:`~kainite.peers.sharing.membership`                    who owns and who follows, as a state machine
:mod:`~kainite.peers.sharing.member_loop`                   carries out what the membership decides:
:mod:`~kainite.peers.sharing.head_look`                     looks at HEAD
:mod:`~kainite.peers.sharing.owning`                        mounts the log and serves it
:mod:`~kainite.peers.sharing.appending`                     connects to the owner and appends through it
:mod:`~kainite.peers.sharing.present_log`                   the log behind the shards' requests
:mod:`~kainite.peers.sharing.latest_reading`                how far this process's shards are read
:mod:`~kainite.peers.sharing.conversation`                  the messages of a member and the owner, without I/O
:mod:`~kainite.peers.sharing.connection`                    a member's connection to the owner
:mod:`~kainite.peers.sharing.reception`                     the connections of others to this process
:mod:`~kainite.peers.sharing.member_session`                one member at the owner
:mod:`~kainite.peers.sharing.lease_holders`                 who holds the shards' leases, as the owner knows it
:mod:`~kainite.peers.sharing.log_metrics`                   a member's metrics
==========================================================  ========================================================

The messages are in :mod:`kainite.peers.messages`.
"""
