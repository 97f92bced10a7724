"""``kainite new-processor``: a starting point for a record processor, in many languages.

Begin reading with :mod:`~kainite.new_processor.catalogue`, the list of the examples; ``starter`` makes the files of a
starting point from one. The files are the examples in ``record_processors/examples``, which the tests run. The package
imports only settings and base.
"""
