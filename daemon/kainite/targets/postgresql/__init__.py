"""PostgreSQL: its address, and how its catalogue is read. The extra ``postgresql`` installs psycopg.

Begin with ``catalogue``. ``connection`` serves the apply job too.
"""
