"""``kainite demo``: the main job from one PostgreSQL to another, on embedded parts."""
