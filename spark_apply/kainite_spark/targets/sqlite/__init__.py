"""SQLite as a target, by the standard library's driver.

Begin with ``target``, then ``rendering`` (statements and values in its SQL).
Imports from outside: the catalogue, errors.
"""
