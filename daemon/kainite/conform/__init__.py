"""``kainite conform``: whether a record processor keeps the protocol.

Kainite plays the daemon against real runs of the author's command, one child a case, and says in the author's
words what the child did that it must not, with the exchange that shows it.

=============================================  ===================================================
:mod:`~kainite.conform.script`                 a case as data: what is asked, what is owed
:mod:`~kainite.conform.samples`                the records that are given to the child
:mod:`~kainite.conform.json_lines_cases`       the cases of KCL's protocol, in both forms
:mod:`~kainite.conform.markers_cases`          the cases of the markers dialect
:mod:`~kainite.conform.stage`                  one run of the command: the only module that does I/O
:mod:`~kainite.conform.json_lines_talk`        a case's steps, asked in a json-lines dialect
:mod:`~kainite.conform.markers_talk`           the same in markers
:mod:`~kainite.conform.granting`               what a checkpoint request is answered
:mod:`~kainite.conform.deltas`                 whether what it gives is deltas
:mod:`~kainite.conform.transcript`             what was said, when
:mod:`~kainite.conform.heard`                  what happened in a step
:mod:`~kainite.conform.judging`                from what happened to findings
:mod:`~kainite.conform.runner`                 all cases: :func:`run`
:mod:`~kainite.conform.report`                 rows, JSON and JUnit
=============================================  ===================================================

The dialects are the daemon's own state machines. So a child that passes here is one that the daemon understands, and
nothing about the protocol is written twice.
"""

from kainite.conform.findings import CaseResult, Finding, Report, Verdict
from kainite.conform.runner import Options, run

__all__ = ["CaseResult", "Finding", "Options", "Report", "Verdict", "run"]
