"""What a chooser may know about two frames without running a job."""

from __future__ import annotations

from dataclasses import dataclass

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """Spark's estimates of both sides, and what the session can do.

    Sizes are bytes, None where Spark has no estimate worth the name; `cores` is how many tasks run
    at once, None where the session does not say; `partitions` are those of a shuffle.  `no_kernel`
    says why rows cannot go through Python, and is empty where they can.
    """

    left_bytes: int | None = None
    right_bytes: int | None = None
    may_broadcast: bool = False
    cores: int | None = None
    partitions: int | None = None
    no_kernel: str = "nothing is known of the session"
    worker_setting: str = ""
    """What to set so that workers can run the kernel."""

    @property
    def both_bytes(self) -> int | None:
        """The size of both sides together, None unless both are known."""
        if self.left_bytes is None or self.right_bytes is None:
            return None
        return self.left_bytes + self.right_bytes


UNKNOWN = Ground()


def in_words(size: int) -> str:
    """Return a size as people say it.

    >>> in_words(2_500), in_words(31 * 1024 * 1024), in_words(3 * 1024**3)
    ('3 KB', '31 MB', '3.0 GB')
    """
    if size < MIB:
        return f"{-(-size // 1024)} KB"
    return f"{size / MIB:.0f} MB" if size < 1024 * MIB else f"{size / MIB / 1024:.1f} GB"
