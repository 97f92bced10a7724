"""A loader of the user's own: how its command is written. A loader cannot be asked for its tables."""
