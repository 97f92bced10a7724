"""The report of ``kainite conform``: findings, and how they are shown. No module here talks to the child.

Begin reading with :mod:`~kainite.conform.report.findings`; ``judging`` makes findings of what happened in a step,
``rendering`` writes rows, JSON and JUnit's XML. The report imports the cases and the exchange's results.
"""
