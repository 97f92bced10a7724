"""``kainite apply resolve``: shows what is left prepared, and finishes it by the log's decisions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from rich.table import Table

from kainite.base.errors import TargetError
from kainite.base.words import counted
from kainite.cli.terminal import say, say_json, stdout
from kainite_spark.targets.atomic.target import AtomicTarget, Resolution, taken_out
from kainite_spark.targets.preparing import TransactionName

CHOICES = """\
--by-log finishes each of them as the log has decided: committed where it says so, else rolled back, and then no apply
job can commit it any more. The units of what is rolled back are applied again. This is right at any time, also while an
apply job runs; each apply job does so by itself at its start, and before each micro-batch.
By hand, in a target, it is right only as the log has decided:
  COMMIT PREPARED,     what the log has not decided, or decided as rolled back: these units stay in this target, count
  XA COMMIT            as applied, and are never applied in the other targets
  ROLLBACK PREPARED,   what the log has decided as committed: these units stay in the other targets, count as applied,
  XA ROLLBACK          and are never applied in this one"""


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


def left_transactions(target: AtomicTarget, log_partition: str) -> tuple[list[LeftTransaction], dict[str, TargetError]]:
    """Returns what is left prepared in the targets that answer, with the log's decisions, and who does not answer, why.

    Raises:
        LogUnavailableError: the log does not answer.
    """
    decided = target.decisions.all()
    words = {True: "committed", False: "rolled back", None: "none"}
    left: list[LeftTransaction] = []
    trouble: dict[str, TargetError] = {}
    for name in target.targets:
        try:
            parts = target.prepared_in(name, log_partition)
        except TargetError as error:
            trouble[name] = error
        else:
            for part in parts:
                left.append(LeftTransaction(name, part.gid, round(part.age, 1), words[decided.get(part.name)]))
    return left, trouble


def resolve(target: AtomicTarget, log_partition: str, *, by_log: bool, as_json: bool) -> int:
    """Prints what is left prepared; returns the exit code, which is 1 while something is left, or a target is silent.

    Args:
        target: the targets.
        log_partition: the log's name in them.
        by_log: whether to finish it first, in each target that answers.
        as_json: whether to print JSON objects, one a line.
    """
    done = target.resolve_reachable(log_partition) if by_log else Resolution({}, {})
    left, silent = left_transactions(target, log_partition)
    trouble = {name: _told(name, why) for name, why in {**done.trouble, **silent}.items()}
    trouble |= {name: _elsewhere(name, parts) for name, parts in target.decisions.elsewhere(target.targets).items()}
    if as_json:
        for row in (*map(asdict, left), *({"target": name, "error": why} for name, why in trouble.items())):
            say_json(row)
        return 1 if left or trouble else 0
    if by_log:
        committed = sum(done.finished.values())
        say(f"{committed} committed, {len(done.finished) - committed} rolled back")
    if left:
        stdout().print(_table(left))
        say(CHOICES)
    for why in trouble.values():
        say(why)
    if not left and not trouble:
        say("no transaction is left prepared")
    return 1 if left or trouble else 0


def _told(target: str, why: TargetError) -> str:
    return f"target.{target} may have more of it, and does not say: {why}. Call this again when it answers"


def _elsewhere(target: str, transactions: Sequence[TransactionName]) -> str:
    return (
        f"target.{target} is not in the settings file, and {counted(len(transactions), 'transaction')}, which the log"
        f" has decided as committed, had a part there, which may be left prepared: {taken_out(target)}"
    )


def _table(left: list[LeftTransaction]) -> Table:
    table = Table("Target", "Transaction", "Seconds", "The log's decision")
    for one in left:
        table.add_row(one.target, one.transaction, f"{one.seconds:g}", one.decision)
    return table
