"""The direction of imports, and the rule that no operator is named in Python."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import irlang
from irlang.catalog import builtin
from irlang.known import BUILTINS, PRELUDE
from irlang.laws import LAWS
from irlang.scalar import SCALARS

ROOT = Path(irlang.__file__).parent
MODULES = sorted(path for path in ROOT.rglob("*.py"))

# A layer may import from itself and from layers to its left; lower and gen never meet.
LAYERS = (
    (
        "dtypes",
        "diagnostics",
        "ast",
        "scalar",
        "special",
        "arithmetic",
        "user_cache",
        "garbage",
        "listed",
    ),
    ("parser", "render", "sarif", "edits"),
    (
        "laws",
        "known",
        "equations",
        "certain",
        "reached",
        "scope",
        "unroll",
        "evaluate",
        "placement",
        "kinds",
        "badness",
    ),
    ("binding", "signature", "instance", "nesting", "expand", "catalog", "graph"),
    ("affine", "equation_text", "equation_rules", "equation_call", "graph_text", "adjoint"),
    ("interp", "mathematics"),
    ("lower", "gen", "importers"),
    ("diff", "docs", "analysis"),
    ("api", "commands", "cli", "lsp", "__main__", "__init__"),
)
FRAMEWORKS = {"torch", "tensorflow", "keras", "onnxruntime", "jax", "mxnet", "theano", "openvino"}


def _layer(name: str) -> int:
    for number, names in enumerate(LAYERS):
        if any(name == n or name.startswith(f"{n}_") for n in names):
            return number
    raise AssertionError(f"irlang/{name} has no layer: put it into the table")


def _part(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def _imports(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            found.add(node.module)
            if node.module == "irlang":
                found.update(f"irlang.{alias.name}" for alias in node.names)
    return found


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_point_one_way(path: Path) -> None:
    own = _part(path)
    for name in _imports(path):
        if not name.startswith("irlang."):
            continue
        other = name.split(".")[1]
        assert _layer(other) <= _layer(own), f"{own} imports {other}"
        assert {own, other} != {"lower", "gen"}, "lower and gen never meet"


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(ROOT)))
def test_no_framework_is_imported_but_by_the_worker(path: Path) -> None:
    roots = {name.split(".")[0] for name in _imports(path)}
    assert not roots & FRAMEWORKS


# Words that are operators' names and something else as well: functions of the language, reductions,
# parts of speech. What stands in the tables of scalar functions is a leaf, not an operator.
WORDS = (
    set(SCALARS) | set(BUILTINS) | set(PRELUDE) | set(LAWS)
    | {"add", "where", "split", "slice", "reverse", "repeat", "identity", "equal", "less", "cast"}
    | {"greater", "maximum", "minimum", "pad", "roll", "stack", "tile", "crop", "square", "dot"}
    | {"concat", "subtract", "multiply", "divide", "power", "negate", "isinf", "isnan", "normalize"}
    | {"transpose", "squeeze", "reshape", "gather", "clip", "argmax", "argmin", "flatten", "trace"}
)  # fmt: skip


@pytest.mark.parametrize(
    "path",
    [p for p in MODULES if _part(p) not in ("lower", "importers")],
    ids=lambda p: str(p.relative_to(ROOT)),
)
def test_no_operator_is_named(path: Path) -> None:
    names = set(builtin().names()) - WORDS
    tree = ast.parse(path.read_text("utf-8"))
    said = [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    assert not {text for text in said if text in names}


def test_every_operator_has_a_docstring_and_a_family_file() -> None:
    for op in builtin():
        assert op.doc, f"{op.name} says nothing of itself"
        assert re.fullmatch(r"[a-z][a-z0-9_]*", op.name)
