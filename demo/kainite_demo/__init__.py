"""``kainite demo``: the main job from one PostgreSQL to another, on embedded parts.

Begin with :mod:`kainite_demo.scenario`, the run from the servers' start to the comparison; ``cli`` is the command,
``run_layout`` names a run's addresses, files and processes, ``load`` runs pgbench and kills, ``monitor`` gathers the
figures. The daemon, the apply job and the extractor are processes of their own. No other package imports this one;
tests and benchmarks take ``postgres_server`` and ``services`` from it.
"""
