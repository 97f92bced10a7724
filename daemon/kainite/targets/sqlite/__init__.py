"""SQLite: its address, and how its catalogue is read, by the standard library's driver. Begin with ``catalogue``."""
