"""Does one step of a load, into whichever kind of target."""

from __future__ import annotations

from kainite.replicate.ends import is_mariadb
from kainite_spark.load.tasks import LoadStepResult, LoadTask, RowsOf, run_step


def run_any_step(task: LoadTask, step: int, rows_of: RowsOf | None = None) -> LoadStepResult:
    """Does a step, unless it is done already (:func:`kainite_spark.load.tasks.run_step`)."""
    if not is_mariadb(task.ends.target):
        return run_step(task, step, rows_of)
    from kainite_spark.load.mariadb_tasks import run_mariadb_step

    return run_mariadb_step(task, step, rows_of)
