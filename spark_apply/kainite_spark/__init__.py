"""Kainite's PySpark side: units of work out of the serialization log into relational targets."""
