"""How daemons, the apply driver and commands talk to the log's owner: one connection core, one server, one client.

==========================================  =======================================================================
:mod:`~kainite.peers.connection`            one side of a connection, without I/O; Waltz's room uses it as well
:mod:`~kainite.peers.server`, ``client``    the shells with sockets
:mod:`~kainite.peers.messages`              the peers' own protocol; ``fragments`` is what an append carries
:mod:`~kainite.peers.access`                where this process listens, who may connect, and who it is; ``users`` reads
                                            the file of users, ``rights`` says what each may do
:mod:`~kainite.peers.held_files`            reads certificates and secrets again when they change; ``access_files``
                                            reads them all, ``certificates`` says when one ends
:mod:`~kainite.peers.byte_budget`           bounds the memory of a port's messages; ``refusals`` counts refused peers
:mod:`~kainite.peers.address`               where an owner is reached, as HEAD names it
:mod:`~kainite.peers.sharing`               members: one owns the log, the others append through it
:mod:`~kainite.peers.feed`                  the apply job follows the log
:mod:`~kainite.peers.rows`                  anybody asks who holds a row
==========================================  =======================================================================
"""
