"""Kainite's own keys of the ``markers`` dialect."""

from __future__ import annotations

from kainite.base.markers import Batching
from kainite.settings.keys.key import Key
from kainite.settings.kinds.markers import arguments, marker, variables
from kainite.settings.kinds.values import choice, millis, stream_output, whole
from kainite.settings.sections.markers import CheckpointAt, OnBadMessage, OnDeath, OnEmptyAnswer

MARKERS_KEYS: tuple[Key, ...] = (
    Key("markerEom", "markers", "eom", marker(), "Ends a message."),
    Key("markerEop", "markers", "eop", marker(), "Ends an answer of the child."),
    Key("markerEob", "markers", "eob", marker(), "Ends a batch."),
    Key("markerBnc", "markers", "bnc", marker(), "The child asks for one more message of a batch."),
    Key(
        "markersBatching",
        "markers",
        "batching",
        choice(Batching),
        "One message at a time, or batches that the child or the daemon ends.",
    ),
    Key(
        "markersBatchSize",
        "markers",
        "batch_size",
        whole(1, 1_000_000),
        "Most messages in a batch.",
    ),
    Key(
        "markersEnvironment",
        "markers",
        "environment",
        variables(),
        "Variables that tell the child the markers: `{eom}`, `{eop}`, `{eob}`, `{bnc}`, `{batching}`, `{batch_size}`.",
    ),
    Key(
        "markersArguments",
        "markers",
        "arguments",
        arguments(),
        "Arguments that tell the child the markers, behind those of the command; the same placeholders.",
        default="none",
    ),
    Key(
        "markersCheckpoint",
        "markers",
        "checkpoint",
        choice(CheckpointAt),
        "When a checkpoint is taken: after each call, after each answer, or once in `markersCheckpointMillis`.",
    ),
    Key(
        "markersCheckpointMillis",
        "markers",
        "checkpoint_interval",
        millis(1, 86_400_000),
        "Least time between two checkpoints under `markersCheckpoint=interval`.",
    ),
    Key(
        "markersOnDeath",
        "markers",
        "on_death",
        choice(OnDeath),
        "How often a message on which a child died is tried: always, `poisonBatchTries` times, twice, or once; then it"
        " is skipped and reported.",
    ),
    Key(
        "markersOnBadMessage",
        "markers",
        "on_bad_message",
        choice(OnBadMessage),
        "A record that cannot be sent or that the child calls bad: report it and go on, or fail until it is mended.",
    ),
    Key(
        "markersOnEmptyAnswer",
        "markers",
        "on_empty_answer",
        choice(OnEmptyAnswer),
        "An answer without messages: there is nothing to write, or the child could not read its request (pyDKB).",
    ),
    Key(
        "output",
        "stream",
        "output",
        stream_output(),
        "The stream that the children's messages are put on, for the next stage; with `childProtocol=markers`, and"
        " `unitsOfWork` off.",
        default="none",
    ),
)
