"""The notebooks run from top to bottom in an empty folder, and their outputs are those that are stored in them."""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from needed import stop_without
from typed_pages import OwnProcesses, mask

ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))
SECONDS = 900  # only a cell that hangs needs it
Json = dict[str, Any]


@pytest.fixture
def kernels() -> None:
    """Skip where no kernel can be started, which is a failure in CI."""
    missing = [name for name in ("nbclient", "ipykernel") if importlib.util.find_spec(name) is None]
    if missing:
        stop_without(f"this test runs notebooks with {missing}: `make setup` installs them")


def execute(notebook: Json, folder: Path) -> Json:
    """Run all cells of a notebook in a kernel of its own; only a cell that is marked may fail."""
    from nbclient import NotebookClient

    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    # One file for the connection, and the history of IPython, go where the test writes.
    settings = os.environ | {
        "PATH": path,
        "IPYTHONDIR": str(folder.parent / "ipython"),
        "JUPYTER_RUNTIME_DIR": str(folder.parent),
    }
    ran = load_formats().from_dict(notebook)
    client = NotebookClient(
        ran, timeout=SECONDS, kernel_name="python3", record_timing=False, resources={"metadata": {"path": str(folder)}}
    )
    client.execute(env=settings)
    return to_plain(ran)


def shown(cell: Json, folder: Path) -> list[Json]:
    """Return the outputs of a cell as a reader sees them: parts of one stream together, without what Spark says when it starts."""
    reader = OwnProcesses(folder, {})
    outputs: list[Json] = []
    for output in cell["outputs"]:
        if output["output_type"] != "stream":
            outputs.append(output)
        elif outputs and outputs[-1].get("name") == output["name"]:
            outputs[-1]["text"] += output["text"]
        else:
            outputs.append(output)
    for output in outputs:
        if output["output_type"] == "stream":
            output["text"] = reader.seen(output["text"])
    return [output for output in outputs if output.get("text") != "\n"]


def compare(stored: Json, ran: Json, folder: Path, *, rewrite: bool) -> bool:
    """Return whether an output was rewritten; without `rewrite`, each must be equal to the stored one."""
    changed = False
    for old, new in zip(stored["cells"], ran["cells"], strict=True):
        if old["cell_type"] != "code":
            continue
        outputs = shown(new, folder)
        texts = [mask(json.dumps(found, indent=1, sort_keys=True)) for found in (old["outputs"], outputs)]
        if texts[0] == texts[1] and old["execution_count"] == new["execution_count"]:
            continue
        assert rewrite, f"the cell\n{old['source']}\nshows\n{texts[1]}\nand the notebook has\n{texts[0]}"
        old |= {"outputs": outputs, "execution_count": new["execution_count"]}
        changed = True
    return changed


def read_notebook(file: Path) -> Json:
    """Return a notebook in which each text is one string; files have lists of lines."""
    return to_plain(load_formats().read(file, as_version=4))


def to_plain(notebook: Any) -> Json:
    """Return a notebook as plain dictionaries."""
    plain: Json = json.loads(json.dumps(notebook))
    return plain


def load_formats() -> Any:
    """Return the module that reads and writes notebooks, which comes with nbclient and has no types."""
    return importlib.import_module("nbformat")


@pytest.mark.slow
@pytest.mark.golden
@pytest.mark.usefixtures("jvm", "kernels")
@pytest.mark.parametrize("file", NOTEBOOKS, ids=lambda file: file.stem)
def test_a_notebook_run_from_top_to_bottom_shows_what_is_stored(
    file: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    stored = read_notebook(file)
    ran = execute(stored, folder)
    if compare(stored, ran, folder, rewrite=request.config.getoption("--rewrite-golden")):
        load_formats().write(load_formats().from_dict(stored), file)


@pytest.mark.parametrize("file", NOTEBOOKS, ids=lambda file: file.stem)
def test_a_notebook_says_how_to_install_and_shows_a_relation_an_explanation_a_picture_and_an_error(file: Path) -> None:
    notebook = json.loads(file.read_text(encoding="utf-8"))
    first = "".join(notebook["cells"][0]["source"])
    assert first.startswith("# ")
    assert "`pip install weft jupyterlab`" in first
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    outputs = json.dumps([cell["outputs"] for cell in code])
    assert outputs.count("<div class='weft-explain'>") == 1
    for part in ("<div class='weft-relation'>", "<svg", "error[W"):
        assert part in outputs, part


CELL: Json = {"cell_type": "code", "source": "1", "execution_count": 1, "metadata": {}, "id": "a"}


def stream(name: str, text: str) -> Json:
    return {"output_type": "stream", "name": name, "text": text}


def test_parts_of_a_stream_are_one_output_without_what_spark_says(tmp_path: Path) -> None:
    parts = [
        stream("stderr", "WARNING: Using incubator modules: jdk.incubator.vector\n"),
        stream("stdout", f"{tmp_path}/a\nb"),
        stream("stdout", "c\n"),
        stream("stderr", "a warning\n"),
    ]
    assert shown({"outputs": parts}, tmp_path) == [
        stream("stdout", "/home/ada/work/a\nbc\n"),
        stream("stderr", "a warning\n"),
    ]


@pytest.mark.parametrize("wrong", ["2 rows in 0.1 s\n", "3 rows in 0.1 s\n"])
def test_another_output_fails_or_is_rewritten_and_a_duration_is_no_difference(tmp_path: Path, wrong: str) -> None:
    ran = {"cells": [CELL | {"outputs": [stream("stdout", "2 rows in 7.2 s\n")]}]}
    stored = {"cells": [CELL | {"outputs": [stream("stdout", wrong)]}]}
    if wrong.startswith("2"):
        assert not compare(stored, ran, tmp_path, rewrite=True)
        return
    with pytest.raises(AssertionError, match="3 rows"):
        compare(stored, ran, tmp_path, rewrite=False)
    assert compare(stored, ran, tmp_path, rewrite=True)
    assert stored == ran
