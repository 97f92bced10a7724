"""KCL's lease table: which worker reads which shard, and how far each shard is processed."""
