"""The programs of duties as children of the daemon. Begin with :mod:`~kainite.fleet.programs.duty_program`.

Imports from outside: child, settings, base.
"""
