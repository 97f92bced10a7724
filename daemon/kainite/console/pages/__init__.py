"""The console's pages, a module each: a function reads what its page needs, and renders it (:mod:`.frame`)."""
