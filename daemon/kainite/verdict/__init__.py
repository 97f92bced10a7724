"""One verdict on an application: healthy or not, why, and what to do next. ``kainite status`` prints it.

:mod:`~kainite.verdict.reading` gathers the :mod:`~kainite.verdict.facts`: the log's HEAD with its summary, the lease
table, the fleet's table, and what the daemons' ``/health`` answer. :mod:`~kainite.verdict.judging` judges them, with
the checks on units (:mod:`~kainite.verdict.units`), shards (:mod:`~kainite.verdict.shards`), several streams
(:mod:`~kainite.verdict.streams`), duties and the source (:mod:`~kainite.verdict.parts`), and the lag
(:mod:`~kainite.verdict.lag`). :mod:`~kainite.verdict.rendering` makes text
and JSON. A daemon's ``/health`` gives the same checks on units from its own log. Only ``reading`` and ``health_page``
do I/O.
"""
