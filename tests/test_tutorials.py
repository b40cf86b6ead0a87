"""The tutorials work as they are written: typed word for word, in an empty folder, with the built wheel."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from installs import ROOT, Environment
from typed_pages import OwnProcesses, Terminal, follow, path_with_python, steps

TUTORIALS = [page for page in sorted((ROOT / "docs" / "tutorials").glob("*.md")) if page.stem != "index"]


@pytest.mark.slow
@pytest.mark.golden
@pytest.mark.usefixtures("jvm")
@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem)
def test_a_tutorial_typed_word_for_word_prints_what_it_shows(
    page: Path, plain: Environment, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    # pip finds all that it is asked for; what it downloads is the matter of test_install.py.
    plain.copy(folder / ".venv")
    settings = {name: os.environ[name] for name in ("HOME", "JAVA_HOME", "LANG") if name in os.environ}
    settings |= {"PATH": path_with_python(), "PIP_NO_INDEX": "1"}
    with Terminal(folder, settings, tmp_path / "startup.py") as terminal:
        follow(page, terminal, rewrite=request.config.getoption("--rewrite-golden"))


@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem)
def test_a_tutorial_goes_from_the_install_to_what_comes_next(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    first = steps(text)[0]
    assert "\npip install weft\n" in first.body
    assert text.rstrip().split("\n## ")[-1].startswith("What to try next")


PAGE = """
```sh
mkdir -p a && cd a
cat <<END
$((1 + 1)) rows in 0.31 s
END
```

```text
2 rows in 7.2 s
```

```csv title="a/rows.csv"
x,y
```

```sh
python3
```

```python
for line in open("rows.csv"):
    print(line, end="")

f"{1 + 1}"
undefined
```

```text
x,y
'2'
NameError: name 'undefined' is not defined
```

```python
exit()
```

```sh
pwd
```

```text
/home/ada/work/a
```
"""


def follow_page(text: str, folder: Path, *, rewrite: bool = False) -> str:
    """Type a page into a terminal; return the page afterwards."""
    (folder / "work").mkdir()
    page = folder / "page.md"
    page.write_text(text, encoding="utf-8")
    settings = {"PATH": path_with_python(), "HOME": str(folder)}
    with Terminal(folder / "work", settings, folder / "startup.py") as terminal:
        follow(page, terminal, rewrite=rewrite)
    return page.read_text(encoding="utf-8")


def test_a_page_that_is_right_passes(tmp_path: Path) -> None:
    assert follow_page(PAGE, tmp_path) == PAGE


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("$((1 + 1)) rows", "$((1 + 2)) rows"),
        ("'2'\n", "'3'\n"),
        ("NameError: name", "NameError: nobody"),
        ("mkdir -p a && cd a\n", "mkdir a b/c\n"),
        ("pwd\n", "ls nowhere\n"),
        ("/work/a\n", "/work\n"),
        ('f"{1 + 1}"\nundefined\n', 'f"{1 + 1}"\nundefined(\n'),
        ("pwd\n```\n\n```text\n/home/ada/work/a\n", "pwd\n```\n\n```text\n/home/ada/work/a\nerror[W0101]: none\n"),
    ],
)
def test_a_page_that_is_wrong_fails(tmp_path: Path, right: str, wrong: str) -> None:
    assert right in PAGE
    with pytest.raises(AssertionError):
        follow_page(PAGE.replace(right, wrong), tmp_path)


def test_rewriting_puts_what_appears_below_its_block_and_keeps_what_differs_from_run_to_run(tmp_path: Path) -> None:
    assert follow_page(PAGE.replace("'2'\n", "an old text\n"), tmp_path, rewrite=True) == PAGE


@pytest.mark.parametrize(
    "text",
    [
        PAGE.replace("```sh\npwd", "```bash\npwd"),
        PAGE.replace("```python\nexit()\n```\n", "```text\nmore\n```\n"),
        PAGE.replace("```python\nexit()\n```\n", "A sentence.\n\n```text\nmore\n```\n"),
    ],
)
def test_a_block_that_nobody_types_is_refused(text: str) -> None:
    with pytest.raises(AssertionError, match=r"nobody runs|below no block"):
        steps(text)


def test_lines_that_are_drawn_over_and_frames_of_a_traceback_are_not_seen(tmp_path: Path) -> None:
    reader = OwnProcesses(tmp_path, {}, {"spark://head:7077": "spark://127.0.0.1:41234"})
    printed = (
        "26/11/19 15:40:11 WARN Utils: x\n[Stage 0:>   (0 + 1)\r          \r\x1b[1m+--+\x1b[0m\n"
        'Traceback (most recent call last):\n  File "x", line 1\n    raise\nweft.errors.A: error[W0101]: x\n = help: y\n'
        f"spark://127.0.0.1:41234 reads {tmp_path}/a\n"
    )
    assert reader.seen(printed) == (
        "+--+\nweft.errors.A: error[W0101]: x\n = help: y\nspark://head:7077 reads /home/ada/work/a\n"
    )
