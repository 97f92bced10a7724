"""The question who holds a row of the target: :mod:`~kainite.peers.rows.asking` asks, ``answering`` answers."""
