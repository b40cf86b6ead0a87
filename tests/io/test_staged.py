"""The exchange of two paths, and the error where a disk cannot do it."""

from __future__ import annotations

import ctypes
import errno
from pathlib import Path
from types import SimpleNamespace

import pytest

from weft.io.staged import exchange


def answer(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """Let the system refuse every exchange with an error number."""

    def refuse(*_: object) -> int:
        ctypes.set_errno(number)
        return -1

    library = SimpleNamespace(renameat2=refuse, renamex_np=refuse)
    monkeypatch.setattr(ctypes, "CDLL", lambda *_, **__: library)


@pytest.mark.parametrize("name", ["EINVAL", "ENOSYS", "EOPNOTSUPP", "EXDEV"])
def test_a_disk_that_cannot_exchange_two_paths_is_not_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    answer(monkeypatch, getattr(errno, name))
    assert exchange(tmp_path / "a", tmp_path / "b") is False


def test_any_other_answer_of_the_disk_is_raised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answer(monkeypatch, errno.EACCES)
    with pytest.raises(PermissionError) as caught:
        exchange(tmp_path / "a", tmp_path / "b")
    assert (caught.value.filename, caught.value.filename2) == (str(tmp_path / "a"), str(tmp_path / "b"))
