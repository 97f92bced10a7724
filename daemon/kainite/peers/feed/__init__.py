"""The log as a feed: the owner sends each batch once it is durable; the apply job folds it without reading DynamoDB.

======================================================  ===========================================================
:mod:`~kainite.peers.feed.queue`                        the batches still to be sent to one follower; begin here
:mod:`~kainite.peers.feed.session`                      one follower at the owner
:mod:`~kainite.peers.feed.conversation`                 what a follower and the owner say, without I/O
:mod:`~kainite.peers.feed.buffer`                       batches that came and are not folded yet, and entries to read
:mod:`~kainite.peers.feed.following`                    a follower's connection, made again when it ends
======================================================  ===========================================================

The messages are in :mod:`kainite.peers.messages`.

**Why every batch that comes is true.** The owner sends a batch when it may acknowledge the batch's appends, not before:
its put was answered with success, and after that answer the lease still ran, or was renewed
(:mod:`kainite.owner.append`). So the batch is in its slot, and no other owner had mounted the partition, and truncated
the slot, before the batch was put. A slot never changes; each later mount fences *behind* the slot, and each later
batch has a higher id. An owner that was overtaken since then, or that was frozen and goes on, may therefore send the
batches that it has still queued: they stand in the log of every later generation too. A batch that such an owner tries
    to put from then on meets a fence,
and is not sent.

So the feed gives the same entries as a strong read of the same ids would, however late and however often it gives them.
Ids are dense, so a reader knows which entry comes next, and folds that entry once, wherever it comes from. A feed that
sends less, or
nothing, costs time alone: the reader sees the gap by the ids, or by
:class:`~kainite.peers.messages.FeedUpTo`, and reads DynamoDB.
"""
