"""Makes the log of ``kainite log`` and ``kainite uow`` available to the console's tests."""

from support.log_cli import log_world, two_targets

__all__ = ["log_world", "two_targets"]
