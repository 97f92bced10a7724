"""Makes the log of ``kainite log`` and ``kainite uow`` available to the console's tests."""

from support.log_cli import log_world

__all__ = ["log_world"]
