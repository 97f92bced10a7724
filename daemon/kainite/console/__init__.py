"""The operator's console: ``kainite console`` serves it to browsers. Needs the extra ``console``.

:mod:`~kainite.console.serving` opens the port, and bounds connections. Each request passes
:mod:`~kainite.console.guard`, which asks :mod:`~kainite.console.access` who it is and what they may.
:mod:`~kainite.console.site` leads it to its page, a module of :mod:`~kainite.console.pages`, which looks at
:mod:`~kainite.console.observed`, one object an application: it reads the log, the lease table, the fleet's table and
the daemons' ``/health`` while somebody looks, and not otherwise. What a page shows is computed by pure modules
(:mod:`~kainite.console.way`, :mod:`~kainite.console.unit_view`, :mod:`~kainite.console.figures`,
:mod:`~kainite.console.batches`) and rendered by the templates.

The console owns no state but :mod:`~kainite.console.figures`, a bounded ring for its charts; what else it holds it can
read again.
"""
