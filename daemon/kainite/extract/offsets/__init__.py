"""The offset of an extraction. Begin reading with :mod:`~kainite.extract.offsets.place`, which does no I/O:
how far a source has been extracted, and what is asked next. ``offset_file`` stores it; ``begin`` makes the first file.
"""
