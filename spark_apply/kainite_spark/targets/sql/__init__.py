"""What the database targets share: Kainite's own tables in the target, and the quoting of names.

Begin with ``ledger``. Both modules are pure; they import the fence and the statements of
:mod:`kainite_spark.targets`, and Kainite's errors, but no database driver.
"""
