"""MariaDB and MySQL: their address, and how their catalogue is read. The extra ``mariadb`` installs PyMySQL.

Begin with ``catalogue``. ``connection`` and ``grants`` serve the apply job too.
"""
