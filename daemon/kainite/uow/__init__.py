"""Units of work: deltas, signatures, the target's catalogue and its precedence map."""
