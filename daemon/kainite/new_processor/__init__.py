"""``kainite new-processor``: a starting point for a record processor, in many languages.

=====================================  ===========================================================
:mod:`~kainite.new_processor.catalogue`   which examples there are, and where their files lie
:mod:`~kainite.new_processor.starter`     the files of a starting point
:mod:`~kainite.cli.new_processor`     the command
=====================================  ===========================================================

What is written are the examples themselves: ``record_processors/examples``, which the tests run.
"""
