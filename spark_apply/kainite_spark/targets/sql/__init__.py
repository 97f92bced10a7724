"""Parts that the database targets share: Kainite's own tables in the target, and the quoting of names.

Begin with ``ledger``. Both modules are pure. Imports from outside: errors and deltas; no database driver.
"""
