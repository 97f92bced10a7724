"""``kainite apply resolve``: shows what is left prepared, and finishes it by the log's decisions."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from rich.table import Table

from kainite.cli.terminal import say, say_json, stdout
from kainite_spark.targets.atomic.target import AtomicTarget

CHOICES = """\
--by-log finishes each of them as the log has decided: committed where it says so, else rolled back, and then no apply
job can commit it any more. The units of what is rolled back are applied again. This is right at any time, also while an
apply job runs; each apply job does so by itself at its start, and before each micro-batch.
By hand, in a target, it is right only as the log has decided:
  COMMIT PREPARED    what the log has not decided, or decided as rolled back: these units stay in this target, count as
                     applied, and are never applied in the other targets
  ROLLBACK PREPARED  what the log has decided as committed: these units stay in the other targets, count as applied, and
                     are never applied in this one"""


@dataclass(frozen=True, slots=True)
class LeftTransaction:
    """A transaction that is prepared in a target.

    Attributes:
        target: the target's name.
        transaction: the identifier there.
        seconds: since it was prepared.
        decision: what the log says of it: committed, rolled back, or none.
    """

    target: str
    transaction: str
    seconds: float
    decision: str


def left_transactions(target: AtomicTarget, log_partition: str) -> list[LeftTransaction]:
    """Returns what is left prepared in all targets, with the log's decisions.

    Raises:
        TargetUnavailableError, LogUnavailableError: a target, or the log, does not answer.
    """
    left = target.left_prepared(log_partition)
    decided = target.decisions.all()
    words = {True: "committed", False: "rolled back", None: "none"}
    return [
        LeftTransaction(name, part.gid, round(part.age, 1), words[decided.get(part.name)])
        for name, parts in left.items()
        for part in parts
    ]


def resolve(target: AtomicTarget, log_partition: str, *, by_log: bool, as_json: bool) -> int:
    """Prints what is left prepared; returns the exit code, which is 1 while something is left.

    Args:
        target: the targets.
        log_partition: the log's name in them.
        by_log: whether to finish it first.
        as_json: whether to print JSON objects, one a line.
    """
    finished = target.resolve(log_partition) if by_log else {}
    left = left_transactions(target, log_partition)
    if as_json:
        for one in left:
            say_json(asdict(one))
        return 1 if left else 0
    if by_log:
        committed = sum(finished.values())
        say(f"{committed} committed, {len(finished) - committed} rolled back")
    if left:
        stdout().print(_table(left))
        say(CHOICES)
    else:
        say("no transaction is left prepared")
    return 1 if left else 0


def _table(left: list[LeftTransaction]) -> Table:
    table = Table("Target", "Transaction", "Seconds", "The log's decision")
    for one in left:
        table.add_row(one.target, one.transaction, f"{one.seconds:g}", one.decision)
    return table
