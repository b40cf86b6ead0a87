"""The fence around the layers: imports point up, pyspark stays below the line, files stay small.

Each rule takes a module and yields sentences; ``test_the_house_is_in_order`` wants none, and
``test_a_rule_sees_what_it_forbids`` shows every rule a module that it must complain about.
"""

from __future__ import annotations

import ast
import graphlib
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from weft import errors

SRC = Path(__file__).parents[1] / "src"

# Imports point up this list: a module may import its own folder and those above it.  A folder that is not listed
# belongs to the one around it.
FOLDERS = (
    "codes",
    "redaction",
    "errors",
    "core",
    "expr",
    "expr.spark",
    "joins.spec",
    "joins.resolve",
    "joins",
    "joins.spark",
    "joins.relation",
    "io",
    "io.spark",
    "pipelines.model",
    "pipelines.plan",
    "pipelines.store",
    "pipelines.spark",
    "pipelines.run",
    "pipelines.scenarios",
    "pipelines",
    "streams.kernel",
    "streams.sql",
    "streams.plan",
    "streams.checkpoint",
    "streams.spark",
    "streams.run",
    "streams",
    "testing",
    "cli",
    "__main__",
    "web",
)
LAYERS = {name: rank for rank, name in enumerate(FOLDERS)}
# Two products that never meet: neither imports the other.
APART = frozenset({"pipelines", "streams"})
# The folders that may import pyspark; everything else is pure.
SPARK_FOLDERS = frozenset(
    "expr.spark joins.spark joins.relation io.spark pipelines.spark pipelines.run pipelines.scenarios "
    "streams.spark streams.run cli __main__ web".split()
)
# The public functions of `weft.streams`, which load when they are first used.
SPARK_MODULES = frozenset({"weft.streams.api"})
COMPUTED = "<computed>"  # below the line, a name may depend on the kind of session
JVM_PACKAGES = frozenset({"pyspark", "py4j"})
KERNEL_WITHOUT_NUMBERS = ("weft.streams.kernel.spec.",)
NUMBER_PACKAGES = frozenset({"numpy", "pyarrow"})
# Of the kernel, what every pure layer may import: it needs the standard library alone.
PLAIN_KERNEL = frozenset({"weft.streams.kernel", "weft.streams.kernel.spec"})
# Reads the rows that the kernel rejected, which are in Parquet files.
NUMBER_READERS = frozenset(
    {"weft.streams.checkpoint.rejects", "weft.streams.checkpoint.cached_files", "weft.streams.checkpoint.limits"}
)
# Modules that may make and set up a session of their own; the user's is read-only for us.
SESSION_MAKERS: frozenset[str] = frozenset({"weft.io.spark.session"})
# Reads the optimiser's size estimate, which classic Spark shows through no public door.
PLAN_READERS = frozenset({"weft.joins.spark.facts"})

# What is loaded by name when it is first needed, and what one folder registers in another.  Nothing else does either.
LATE: dict[str, frozenset[str]] = {
    "weft": frozenset({"weft.streams", COMPUTED}),  # public names that need pyspark: `weft._LAZY` lists them
    "weft.streams": frozenset({"weft.streams.api"}),
    "weft.expr": frozenset({"weft.expr.read"}),  # the parser, when a text is read
    "weft.expr.spark.frames": frozenset({COMPUTED}),  # classic or Connect, as the frame at hand
    "weft.joins.relation.frame": frozenset({COMPUTED}),  # packages of extras
    "weft.io.spark.connector": frozenset({COMPUTED}),  # the Spark half that a connector registers
    "weft.io.spark.session": frozenset({"pyspark.testing.utils"}),  # what PySpark loads while the JVM starts
    "weft.io.spark.lakehouse": frozenset({COMPUTED}),  # optional packages
    "weft.io.spark.files": frozenset({"pyarrow.parquet"}),
    "weft.io.spark.database": frozenset({"psycopg"}),
    "weft.pipelines.run.tables": frozenset({"psycopg", "weft.io.spark.catalog_table"}),
    "weft.pipelines.run.on_worker": frozenset({COMPUTED}),  # packages that a worker may not have
    "weft.cli.commands.doctor": frozenset({COMPUTED}),  # packages that may be missing
}
HOOKS: dict[str, frozenset[str]] = {"weft.joins.resolve.join": frozenset({"JoinSpec._resolver"})}

MOST_FILE_LINES = 600
MOST_FUNCTION_LINES = 60
BUILT_IN_ERRORS = frozenset(
    "BaseException Exception IndexError KeyError LookupError NotImplementedError RuntimeError TypeError "
    "ValueError".split()
)
SESSION_NAMES = frozenset(
    "_jc _jdf _jsc _jvm sparkContext getOrCreate createTempView createOrReplaceTempView "
    "createGlobalTempView createOrReplaceGlobalTempView".split()
)
EMPTY_WORDS = frozenset("util utils helper helpers manager managers misc common stuff v1 v2 new old tmp".split())
OUR_ERRORS = frozenset(
    {
        "Diagnostic",
        *(n for n, c in vars(errors).items() if isinstance(c, type) and issubclass(c, errors.WeftError)),
    }
)
TEXTS = (ast.Constant, ast.JoinedStr, ast.BinOp, ast.IfExp)
Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Module:
    """A source file: its dotted name, text and tree."""

    name: str
    text: str
    tree: ast.Module
    is_package: bool = False

    @classmethod
    def read(cls, path: Path) -> Module:
        parts = path.relative_to(SRC).with_suffix("").parts
        is_package = parts[-1] == "__init__"
        text = path.read_text(encoding="utf-8")
        return cls(".".join(parts[:-1] if is_package else parts), text, ast.parse(text), is_package)

    @classmethod
    def of(cls, name: str, text: str) -> Module:
        return cls(name, text, ast.parse(text))

    @property
    def folder(self) -> str:
        """The folder of FOLDERS that the module is in, or an empty text for the top of the package."""
        return folder_of(self.name)

    @property
    def is_pure(self) -> bool:
        return bool(self.folder) and self.folder not in SPARK_FOLDERS and self.name not in SPARK_MODULES


def folder_of(name: str) -> str:
    """Return the innermost folder of FOLDERS that holds a module, or an empty text."""
    parts = name.split(".")[1:]
    inner = (".".join(parts[:n]) for n in range(len(parts), 0, -1))
    return next((folder for folder in inner if folder in LAYERS), "")


# Templates are files of the user's workspace, not modules.
MODULES = tuple(Module.read(path) for path in sorted((SRC / "weft").rglob("*.py")) if "templates" not in path.parts)
NAMES = frozenset(m.name for m in MODULES)
Rule = Callable[[Module], Iterator[str]]


def imported(nodes: Iterator[ast.AST]) -> Iterator[tuple[int, str]]:
    """Yield line and dotted name of everything imported, also through ``import_module``."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)
        elif isinstance(node, ast.Call) and node.args and _called(node) in ("import_module", "__import__"):
            if isinstance(node.args[0], ast.Constant):
                yield node.lineno, str(node.args[0].value)
            else:
                yield node.lineno, COMPUTED


def _called(node: ast.Call) -> str:
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def module_level(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes that run when the module is imported: all but the bodies of functions."""
    for child in ast.iter_child_nodes(tree):
        if not isinstance(child, Function | ast.Lambda):
            yield child
            yield from module_level(child)


def imports_point_up(module: Module) -> Iterator[str]:
    if module.name == "weft":
        return  # the public face gathers names from every folder
    if not module.folder:
        yield f"{module.name} is in no folder of the map: {', '.join(FOLDERS)}"
        return
    for line, name in imported(ast.walk(module.tree)):
        if name == COMPUTED and module.is_pure:
            yield f"{module.name}:{line} computes what it imports"
        if name.split(".")[0] != "weft":
            continue
        wanted = folder_of(name)
        if not wanted:
            yield f"{module.name}:{line} imports {name}: name the folder it comes from"
        elif {_product(wanted), _product(module.folder)} == APART:
            yield f"{module.name}:{line} imports {name}: pipelines and streams never meet"
        elif LAYERS[wanted] > LAYERS[module.folder]:
            yield f"{module.name}:{line} imports {name}: {wanted} is below {module.folder}"


def _product(folder: str) -> str:
    return folder.partition(".")[0]


def pyspark_stays_below_the_line(module: Module) -> Iterator[str]:
    nodes = ast.walk(module.tree) if module.is_pure else module_level(module.tree)
    if module.is_pure or module.name == "weft":
        for line, name in imported(nodes):
            if name.split(".")[0] in JVM_PACKAGES:
                yield f"{module.name}:{line} imports {name} above the line"


def the_kernel_travels_alone(module: Module) -> Iterator[str]:
    """The kernel is sent to workers that have no Weft, and its values load without numpy."""
    if module.folder != "streams.kernel":
        return
    allowed = sys.stdlib_module_names | {"weft"}
    allowed |= set() if module.name in PLAIN_KERNEL else NUMBER_PACKAGES
    top = {id(node) for node in module_level(module.tree)}
    for node in ast.walk(module.tree):
        for line, name in imported(iter((node,))):
            if id(node) not in top:
                yield f"{module.name}:{line} imports {name} inside a function: it would not travel"
            elif name.split(".")[0] not in allowed:
                yield f"{module.name}:{line} imports {name}: workers may not have it"
            elif name.split(".")[0] == "weft" and not name.startswith("weft.streams.kernel."):
                yield f"{module.name}:{line} imports {name}: the kernel imports only itself"


def numbers_stay_in_the_kernel(module: Module) -> Iterator[str]:
    """Planning and checking need no numpy: of the pure layers only the kernel and the tests have it."""
    if not module.is_pure or module.folder in ("streams.kernel", "testing") or module.name in NUMBER_READERS:
        return
    for line, name in imported(ast.walk(module.tree)):
        if name.split(".")[0] in NUMBER_PACKAGES:
            yield f"{module.name}:{line} imports {name}: numbers stay in the kernel"
        elif name.startswith("weft.streams.kernel.") and not f"{name}.".startswith(KERNEL_WITHOUT_NUMBERS):
            yield f"{module.name}:{line} imports {name}: take weft.streams.kernel.spec"


def what_loads_late_is_declared(module: Module) -> Iterator[str]:
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Call):
            for line, name in imported(iter((node,))):
                if name not in LATE.get(module.name, ()):
                    yield f"{module.name}:{line} loads {name} by its name: import it, or declare it in LATE"
    brought = {
        alias.asname or alias.name
        for node in ast.walk(module.tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    for node in module.tree.body:
        for target in node.targets if isinstance(node, ast.Assign) else ():
            hook = ast.unparse(target)
            if hook.partition(".")[0] in brought and hook not in HOOKS.get(module.name, ()):
                yield f"{module.name}:{node.lineno} sets {hook} of another module: declare it in HOOKS"


def imports_are_absolute(module: Module) -> Iterator[str]:
    for node in ast.walk(module.tree):
        if isinstance(node, ast.ImportFrom) and node.level:
            yield f"{module.name}:{node.lineno} imports relatively"


def files_stay_short(module: Module) -> Iterator[str]:
    lines = len(module.text.splitlines())
    if lines > MOST_FILE_LINES:
        yield f"{module.name} has {lines} lines, {MOST_FILE_LINES} is the most"


def functions_stay_short(module: Module) -> Iterator[str]:
    for node in ast.walk(module.tree):
        if isinstance(node, Function):
            lines = _length(node) - (_length(node.body[0]) if ast.get_docstring(node) is not None else 0)
            if lines > MOST_FUNCTION_LINES:
                yield f"{module.name}:{node.lineno} {node.name} has {lines} lines, {MOST_FUNCTION_LINES} is the most"


def _length(node: ast.stmt) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


def errors_are_ours(module: Module) -> Iterator[str]:
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Raise) and node.exc is not None:
            raised = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
            if isinstance(raised, ast.Name) and raised.id in BUILT_IN_ERRORS:
                yield f"{module.name}:{node.lineno} raises {raised.id}: use a class of weft.errors"


def errors_say_the_next_step(module: Module) -> Iterator[str]:
    """Every message of ours has a help line; findings that are handed on bring their own."""
    for node in ast.walk(module.tree):
        if not isinstance(node, ast.Call) or _called(node) not in OUR_ERRORS:
            continue
        reported = [node.args[2]] if _called(node) == "Diagnostic" and len(node.args) > 2 else []
        reported += [k.value for k in node.keywords if k.arg in ("help", None)]
        handed_on = bool(node.args) and not isinstance(node.args[0], TEXTS)
        empty = any(isinstance(t, ast.Constant) and not t.value for t in reported)
        if empty or not (reported or (handed_on and _called(node) != "Diagnostic")):
            yield f"{module.name}:{node.lineno} {_called(node)} says no next step: pass help="


def no_error_is_swallowed(module: Module) -> Iterator[str]:
    for node in ast.walk(module.tree):
        if isinstance(node, ast.ExceptHandler):
            broad = isinstance(node.type, ast.Name) and node.type.id in ("Exception", "BaseException")
            if node.type is None:
                yield f"{module.name}:{node.lineno} has a bare except"
            elif broad and all(isinstance(s, ast.Pass | ast.Continue) for s in node.body):
                yield f"{module.name}:{node.lineno} swallows every error"


def the_session_is_read_only(module: Module) -> Iterator[str]:
    if module.name in SESSION_MAKERS:
        return
    for node in ast.walk(module.tree):
        name = node.attr if isinstance(node, ast.Attribute) else ""
        if isinstance(node, ast.Call) and _called(node) in ("getattr", "setattr") and len(node.args) > 1:
            name = str(node.args[1].value) if isinstance(node.args[1], ast.Constant) else ""
        if name == "_jdf" and module.name in PLAN_READERS:
            continue
        if name in SESSION_NAMES:
            yield f"{module.name}:{node.lineno} uses {name}"  # type: ignore[attr-defined]
        if isinstance(node, ast.Attribute) and name in ("set", "unset"):
            owner = node.value
            if isinstance(owner, ast.Attribute) and owner.attr == "conf":
                yield f"{module.name}:{node.lineno} uses conf.{name}"


def names_say_something(module: Module) -> Iterator[str]:
    for part in module.name.split("."):
        empty = EMPTY_WORDS & set(part.lower().split("_"))
        if empty:
            yield f"{module.name} says nothing with {min(empty)!r}"


def public_things_are_documented(module: Module) -> Iterator[str]:
    if any(part.startswith("_") for part in module.name.split(".")):
        return
    if not ast.get_docstring(module.tree):
        yield f"{module.name} has no docstring"
    yield from _undocumented(module.tree.body, module.name)


def _undocumented(body: list[ast.stmt], owner: str) -> Iterator[str]:
    for node in body:
        if not isinstance(node, Function | ast.ClassDef) or node.name.startswith("_"):
            continue
        decorators = {d.attr if isinstance(d, ast.Attribute) else getattr(d, "id", "") for d in node.decorator_list}
        # A variant of a signature, a setter and an override say nothing new.
        if not decorators & {"overload", "override", "setter"} and not ast.get_docstring(node):
            yield f"{owner}.{node.name} has no docstring"
        if isinstance(node, ast.ClassDef):
            yield from _undocumented(node.body, f"{owner}.{node.name}")


RULES: tuple[Rule, ...] = (
    imports_point_up,
    pyspark_stays_below_the_line,
    the_kernel_travels_alone,
    numbers_stay_in_the_kernel,
    what_loads_late_is_declared,
    imports_are_absolute,
    files_stay_short,
    functions_stay_short,
    errors_are_ours,
    errors_say_the_next_step,
    no_error_is_swallowed,
    the_session_is_read_only,
    names_say_something,
    public_things_are_documented,
)


def dependencies(modules: tuple[Module, ...]) -> dict[str, set[str]]:
    """Return for each module those that must be imported before it."""
    names = {m.name for m in modules}
    found: dict[str, set[str]] = {}
    for module in modules:
        needs: set[str] = set()
        for _, name in imported(module_level(module.tree)):
            owner = name if name in names else name.rpartition(".")[0]
            needs |= {owner} & names
        found[module.name] = needs
    return found


def cycle(modules: tuple[Module, ...]) -> str:
    """Return one import cycle as ``a -> b -> a``, or an empty text."""
    try:
        graphlib.TopologicalSorter(dependencies(modules)).prepare()
    except graphlib.CycleError as found:
        return " -> ".join(reversed(found.args[1]))
    return ""


def folder_imports(modules: tuple[Module, ...]) -> dict[str, set[str]]:
    """Return for each folder the folders that its modules import, wherever in a file they do so."""
    found: dict[str, set[str]] = {}
    for module in modules:
        if module.folder:
            names = (name for _, name in imported(ast.walk(module.tree)) if name.split(".")[0] == "weft")
            found.setdefault(module.folder, set()).update(folder_of(name) for name in names)
    return {folder: needs - {folder, ""} for folder, needs in found.items()}


def drawn(edges: dict[str, set[str]]) -> str:
    """Return folders and their imports as a Mermaid graph, without arrows that follow from others.

    >>> print(drawn({"a": set(), "b.x": {"a"}, "c": {"a", "b.x"}}))
    graph BT
      b_x["b/x"] --> a["a"]
      c["c"] --> b_x["b/x"]
    """
    reached: dict[str, set[str]] = {}
    for folder in graphlib.TopologicalSorter(edges).static_order():
        needs = edges.get(folder, set())
        reached[folder] = needs.union(*(reached[n] for n in needs))
    lines = []
    for folder in sorted(edges, key=lambda f: LAYERS.get(f, 0)):
        needs = edges[folder]
        direct = {n for n in needs if not any(n in reached[other] for other in needs - {n})}
        lines += [f"  {_box(folder)} --> {_box(n)}" for n in sorted(direct)]
    return "\n".join(["graph BT", *lines])


def _box(folder: str) -> str:
    return f'{folder.replace(".", "_")}["{folder.replace(".", "/")}"]'


def test_folders_do_not_import_each_other_in_a_circle() -> None:
    graphlib.TopologicalSorter(folder_imports(MODULES)).prepare()


@pytest.mark.golden
def test_the_map_of_the_docs_is_drawn_from_the_imports(pytestconfig: pytest.Config) -> None:
    page = SRC.parent / "docs" / "architecture.md"
    text = page.read_text(encoding="utf-8")
    head, _, rest = text.partition("<!-- imports -->")
    tail = rest.partition("<!-- /imports -->")[2]
    graph = drawn(folder_imports(MODULES))
    wanted = f"{head}<!-- imports -->\n```mermaid\n{graph}\n```\n<!-- /imports -->{tail}"
    if pytestconfig.getoption("--rewrite-golden"):
        page.write_text(wanted, encoding="utf-8")
    assert wanted == page.read_text(encoding="utf-8"), "the map is old: `make golden` draws it again"


def test_the_page_and_the_rule_have_the_same_folders() -> None:
    page = (SRC.parent / "docs" / "architecture.md").read_text(encoding="utf-8")
    rows = [line.split("|")[1] for line in page.splitlines() if line.startswith("| `")]
    named = {name.replace("/", "."): "*" in row for row in rows for name in row.split("`")[1::2]}
    inner = {"pipelines", "streams", "__main__", "web"}  # what only holds folders, and what is not there yet
    assert named == {folder: folder in SPARK_FOLDERS for folder in FOLDERS if folder not in inner}


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_the_house_is_in_order(rule: Rule) -> None:
    problems = [problem for module in MODULES for problem in rule(module)]
    assert not problems, "\n".join(problems)


def test_everything_that_is_declared_as_late_is_there() -> None:
    trees = {m.name: m.tree for m in MODULES}
    for name, loaded in LATE.items():
        calls = (node for node in ast.walk(trees[name]) if isinstance(node, ast.Call))
        assert {target for _, target in imported(calls)} == loaded, name
    for name, hooks in HOOKS.items():
        assert hooks <= {ast.unparse(t) for n in trees[name].body if isinstance(n, ast.Assign) for t in n.targets}


def unmatched_folders(folders: Iterable[Path], source: Path) -> list[str]:
    """Return the folders of tests that mirror no folder of the source."""
    return sorted(str(folder) for folder in folders if not (source / folder).is_dir())


def test_tests_mirror_the_source_tree() -> None:
    tests = Path(__file__).parent
    folders = {file.parent.relative_to(tests) for file in tests.rglob("test_*.py") if file.parent != tests}
    assert len(folders) > 20
    assert unmatched_folders(folders, SRC / "weft") == []
    assert unmatched_folders([Path("joins/spark"), Path("joins/odd")], SRC / "weft") == ["joins/odd"]


# Words of another language's idioms: the documentation of Spark, polars and pandas has none of them.
AVOIDED = re.compile(
    r"(?i)\b(?:told|said|mends?|mended|gives back|given back|elder|lies|stands(?! for)|in nobody's way)\b"
)


def avoided_words(text: str) -> list[str]:
    return [match[0] for match in AVOIDED.finditer(text)]


def test_sources_and_documents_are_in_plain_english() -> None:
    root = SRC.parent
    pages = [*root.glob("*.md"), *(root / "docs").rglob("*.md"), *(SRC / "weft").rglob("*.py")]
    assert len(pages) > 300
    found = {str(p.relative_to(root)): avoided_words(p.read_text(encoding="utf-8")) for p in pages}
    assert {page: words for page, words in found.items() if words} == {}
    assert avoided_words("An elder file that lies here stands for what was told.") == ["elder", "lies", "told"]


MOST_EQUAL_LINES = 9


def code_lines(text: str) -> list[tuple[int, str]]:
    """Return the lines of code with their numbers: no imports, docstrings, comments or blank lines."""
    tree = ast.parse(text)
    left_out: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom) or (
            isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        ):
            left_out.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    lines = ((number, line.strip()) for number, line in enumerate(text.splitlines(), start=1))
    return [(n, line) for n, line in lines if line and not line.startswith("#") and n not in left_out]


def repeated_runs(texts: Mapping[str, str]) -> Iterator[str]:
    """Yield the places where a run of more than MOST_EQUAL_LINES lines occurs again."""
    first: dict[tuple[str, ...], str] = {}
    size = MOST_EQUAL_LINES + 1
    for name, text in texts.items():
        lines = code_lines(text)
        for start in range(len(lines) - size + 1):
            run = tuple(line for _, line in lines[start : start + size])
            place = f"{name}:{lines[start][0]}"
            if first.setdefault(run, place) != place:
                yield f"{place} repeats {first[run]}"


def test_no_run_of_ten_equal_lines_occurs_twice() -> None:
    root = SRC.parent
    files = [path for folder in ("src", "tests", "bench", "examples") for path in sorted((root / folder).rglob("*.py"))]
    texts = {
        str(path.relative_to(root)): path.read_text(encoding="utf-8") for path in files if ".venv" not in str(path)
    }
    assert len(texts) > 600
    assert list(repeated_runs(texts)) == []


def test_a_repeated_run_is_reported() -> None:
    run = "".join(f"x{i} = {i}\n" for i in range(MOST_EQUAL_LINES + 1))
    assert list(repeated_runs({"a": run, "b": f"# why\n{run}"})) == ["b:2 repeats a:1"]
    assert list(repeated_runs({"a": run, "b": run.replace("x3", "y")})) == []


def test_there_is_a_house() -> None:
    assert {"weft", "weft.errors", "weft.core.types"} <= NAMES


def test_no_module_needs_itself() -> None:
    assert cycle(MODULES) == ""


def test_the_pure_layers_and_the_public_face_load_without_pyspark() -> None:
    pure = [m.name for m in MODULES if m.is_pure or m.name == "weft"]
    code = (
        "import importlib, sys\n"
        f"for name in {pure!r}: importlib.import_module(name)\n"
        f"print([name for name in {sorted(JVM_PACKAGES)!r} if name in sys.modules])"
    )
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        capture_output=True,
        text=True,
        check=False,
        env={"PYTHONPATH": str(SRC)},
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout.strip() == "[]"


BODY = "\n".join(f"    x{i} = {i}" for i in range(MOST_FUNCTION_LINES))
BAD: tuple[tuple[Rule, str, str], ...] = (
    (imports_point_up, "weft.core.a", "from weft.joins.resolve.resolved import Slot"),
    (imports_point_up, "weft.pipelines.plan.a", "import weft.relation"),
    (imports_point_up, "weft.pipelines.plan.a", "def f():\n    from weft import relation"),
    (imports_point_up, "weft.expr.a", "import importlib\nimportlib.import_module('weft.joins.spec.join')"),
    (imports_point_up, "weft.expr.a", "import importlib\nimportlib.import_module(name)"),
    (imports_point_up, "weft.pipelines.run.a", "from weft import JoinSpec"),
    (imports_point_up, "weft.pipelines.run.a", "import weft"),
    (imports_point_up, "weft.attic", "x = 1"),
    (imports_point_up, "weft.joins.resolve.a", "from weft.joins.choose import Choice"),
    (imports_point_up, "weft.streams.run.a", "from weft.pipelines.model.values import PERIOD_FROM"),
    (imports_point_up, "weft.pipelines.run.a", "def f():\n    from weft.streams.sql.job import text_of"),
    (pyspark_stays_below_the_line, "weft.pipelines.plan.a", "import pyspark"),
    (pyspark_stays_below_the_line, "weft.testing.a", "def f():\n    from pyspark.sql import Row"),
    (pyspark_stays_below_the_line, "weft.joins.spec.a", "if TYPE_CHECKING:\n    from pyspark.sql import Row"),
    (pyspark_stays_below_the_line, "weft.joins.spec.a", "import_module('pyspark.sql')"),
    (pyspark_stays_below_the_line, "weft.core.a", "import py4j.protocol"),
    (pyspark_stays_below_the_line, "weft", "try:\n    import pyspark\nfinally:\n    pass"),
    (the_kernel_travels_alone, "weft.streams.kernel.a", "from weft.core.types import DType"),
    (the_kernel_travels_alone, "weft.streams.kernel.a", "import pandas"),
    (the_kernel_travels_alone, "weft.streams.kernel.a", "def f():\n    from weft.streams.kernel import spec"),
    (the_kernel_travels_alone, "weft.streams.kernel.spec", "import numpy as np"),
    (numbers_stay_in_the_kernel, "weft.pipelines.plan.a", "import numpy as np"),
    (numbers_stay_in_the_kernel, "weft.pipelines.store.a", "def f():\n    import pyarrow.fs"),
    (numbers_stay_in_the_kernel, "weft.pipelines.plan.a", "from weft.streams.kernel.pairs import expand"),
    (numbers_stay_in_the_kernel, "weft.pipelines.plan.a", "from weft.streams.kernel import pairs"),
    (what_loads_late_is_declared, "weft.joins.spark.a", "importlib.import_module('psycopg')"),
    (what_loads_late_is_declared, "weft.cli.a", "def f(name):\n    return import_module(name)"),
    (what_loads_late_is_declared, "weft.streams", "importlib.import_module('weft.streams.run.job')"),
    (
        what_loads_late_is_declared,
        "weft.joins.resolve.join",
        "from weft.joins.spec.join import JoinSpec\nJoinSpec.bind = f",
    ),
    (imports_are_absolute, "weft.pipelines.plan.a", "from .resolved import Slot"),
    (imports_are_absolute, "weft.pipelines.plan.a", "from .. import core"),
    (files_stay_short, "weft.core.a", "\n" * (MOST_FILE_LINES + 1)),
    (functions_stay_short, "weft.core.a", f"def f():\n{BODY}"),
    (functions_stay_short, "weft.core.a", f"class C:\n  async def f():\n    '''Doc.'''\n{BODY}"),
    (errors_are_ours, "weft.core.a", "raise ValueError('no')"),
    (errors_are_ours, "weft.core.a", "def f():\n    raise NotImplementedError"),
    (errors_are_ours, "weft.pipelines.run.a", "raise Exception('no') from None"),
    (errors_say_the_next_step, "weft.core.a", "raise JoinSpecError('no', code='W0302')"),
    (errors_say_the_next_step, "weft.core.a", "def f():\n    return ArgumentError(f'{x} is not a string')"),
    (errors_say_the_next_step, "weft.core.a", "raise errors.ArgumentError('no', help='')"),
    (errors_say_the_next_step, "weft.core.a", "found.append(Diagnostic('W0302', message))"),
    (no_error_is_swallowed, "weft.core.a", "try:\n    f()\nexcept:\n    raise"),
    (no_error_is_swallowed, "weft.core.a", "try:\n    f()\nexcept Exception:\n    pass"),
    (the_session_is_read_only, "weft.joins.spark.a", "spark.conf.set('a', 'b')"),
    (the_session_is_read_only, "weft.joins.spark.a", "change = df.sparkSession.conf.set"),
    (the_session_is_read_only, "weft.joins.spark.a", "df.createOrReplaceTempView('t')"),
    (the_session_is_read_only, "weft.pipelines.run.a", "SparkSession.builder.getOrCreate()"),
    (the_session_is_read_only, "weft.joins.spark.a", "df._jdf.queryExecution()"),
    (the_session_is_read_only, "weft.joins.spark.a", "getattr(column, '_jc')"),
    (the_session_is_read_only, "weft.joins.relation.a", "spark.sparkContext.parallelize([])"),
    (names_say_something, "weft.core.utils", ""),
    (names_say_something, "weft.core.date_helper", ""),
    (names_say_something, "weft.pipelines.run.manager.a", ""),
    (names_say_something, "weft.joins.spark.asof_v2", ""),
    (public_things_are_documented, "weft.core.a", "x = 1"),
    (public_things_are_documented, "weft.core.a", "'''Doc.'''\ndef f(): ..."),
    (
        public_things_are_documented,
        "weft.core.a",
        "'''Doc.'''\nclass C:\n    '''Doc.'''\n    def f(self): ...",
    ),
)
GOOD: tuple[tuple[Rule, str, str], ...] = (
    (
        imports_point_up,
        "weft.pipelines.plan.a",
        "from weft.pipelines.plan.b import c\nfrom weft import errors, expr",
    ),
    (imports_point_up, "weft.streams.run.a", "from weft.io.spark.session import Session"),
    (imports_point_up, "weft.joins.spark.a", "import_module(type(df).__module__)"),
    (
        imports_point_up,
        "weft.testing.a",
        "from weft.streams.plan.b import c\nfrom weft.pipelines.plan.b import c",
    ),
    (imports_point_up, "weft", "from weft.cli import main"),
    (pyspark_stays_below_the_line, "weft.joins.spark.a", "import pyspark"),
    (pyspark_stays_below_the_line, "weft", "def __getattr__(name):\n    import pyspark"),
    (pyspark_stays_below_the_line, "weft.core.a", "import pysparkling"),
    (
        the_kernel_travels_alone,
        "weft.streams.kernel.a",
        "import json\nimport numpy as np\nimport pyarrow.compute as pc\nfrom weft.streams.kernel.spec import Clock",
    ),
    (the_kernel_travels_alone, "weft.joins.spark.a", "import pandas"),
    (
        numbers_stay_in_the_kernel,
        "weft.pipelines.plan.a",
        "from weft.streams.kernel.spec import Clock\nimport weft.streams.kernel.spec",
    ),
    (
        numbers_stay_in_the_kernel,
        "weft.testing.a",
        "import numpy\nfrom weft.streams.kernel.pairs import expand",
    ),
    (numbers_stay_in_the_kernel, "weft.joins.spark.a", "import numpy"),
    (what_loads_late_is_declared, "weft.streams", "importlib.import_module('weft.streams.api')"),
    (
        what_loads_late_is_declared,
        "weft.joins.resolve.join",
        "from weft.joins.spec.join import JoinSpec\nJoinSpec._resolver = staticmethod(resolve_join)",
    ),
    (files_stay_short, "weft.core.a", "\n" * MOST_FILE_LINES),
    (
        functions_stay_short,
        "weft.core.a",
        "def f():\n    '''" + "\n" * 70 + "'''\n" + BODY[: BODY.rfind("\n")],
    ),
    (errors_are_ours, "weft.core.a", "raise JoinSpecError('no')"),
    (errors_are_ours, "weft.core.a", "try:\n    f()\nexcept E:\n    raise"),
    (errors_say_the_next_step, "weft.core.a", "raise JoinSpecError('no', help='say yes')"),
    (errors_say_the_next_step, "weft.core.a", "raise JoinSpecError(cause.diagnostics) from cause"),
    (errors_say_the_next_step, "weft.core.a", "Diagnostic('W0302', 'no', 'say yes')"),
    (no_error_is_swallowed, "weft.core.a", "try:\n    f()\nexcept KeyError:\n    pass"),
    (
        the_session_is_read_only,
        "weft.joins.spark.a",
        "spark.conf.get('a')\nseen.set(1)\nobject.__setattr__(s, 'a', 1)",
    ),
    (names_say_something, "weft.core.newton", ""),
    (
        public_things_are_documented,
        "weft.core.a",
        "'''Doc.'''\ndef _f(): ...\nclass _C:\n    def f(self): ...",
    ),
)


@pytest.mark.parametrize(("rule", "name", "text"), BAD)
def test_a_rule_sees_what_it_forbids(rule: Rule, name: str, text: str) -> None:
    problems = list(rule(Module.of(name, text)))
    assert len(problems) == 1
    assert problems[0].startswith(name)


@pytest.mark.parametrize(("rule", "name", "text"), GOOD)
def test_a_rule_lets_the_rest_pass(rule: Rule, name: str, text: str) -> None:
    assert list(rule(Module.of(name, text))) == []


def test_every_rule_has_a_proof_that_it_can_fail() -> None:
    assert {rule for rule, _, _ in BAD} == set(RULES)


def test_a_cycle_is_named() -> None:
    a = Module.of("weft.core.a", "from weft.core import b")
    b = Module.of("weft.core.b", "from weft.core.a import thing")
    lazy = Module.of("weft.core.b", "def f():\n    from weft.core.a import thing")
    assert cycle((a, b)) in (
        "weft.core.a -> weft.core.b -> weft.core.a",
        "weft.core.b -> weft.core.a -> weft.core.b",
    )
    assert cycle((a, lazy)) == ""
