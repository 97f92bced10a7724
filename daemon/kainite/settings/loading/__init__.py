"""Loading: from a file, the environment and the command line to validated settings.

Begin reading with :func:`kainite.settings.loading.examination.examine`. ``properties_file`` reads the file,
``overrides`` the environment and the command line; ``consistency`` finds problems, ``surprises`` warnings and notes;
``reload`` applies a changed file to a running daemon. Loading imports keys, kinds and sections.
"""
