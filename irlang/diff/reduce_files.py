"""A case as files: the program's text, and beside it a safetensors file of the same name.

That holds the inputs, and the parameters that are too long for the text. It is read again by
`irlang reduce`, `irlang localize` and `irlang diff`, so that a finding is one argument.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import safetensors

from irlang import ast
from irlang.catalog import Catalog, builtin
from irlang.diagnostics import fail
from irlang.diff.calls import Case
from irlang.diff.gradients import with_loss_shown
from irlang.dtypes import DTYPES
from irlang.graph import Graph, Initial, Param, Port
from irlang.graph_text import spelled, to_ast
from irlang.interp.values import beyond
from irlang.lower.manner import Manner
from irlang.parser.printer import print_file

Array = np.ndarray[Any, np.dtype[Any]]
_MOST_BYTES = 1 << 30  # of a file of inputs that is read
_BOLD = "in forms that targets may refuse"
_EDGE = "with values at the edges of their types"
_TURN = "written in another way: "
OF_GRADIENTS = "seen in its gradients"
INVALID = "an invalid call, which has to be refused"
_HEAD = 4096  # bytes of a file that may hold its first lines
_NAMES = {
    "f16": "F16", "bf16": "BF16", "f32": "F32", "f64": "F64", "bool": "BOOL",
    **{f"{sign.lower()}{bits}": f"{sign}{bits}" for sign in "IU" for bits in (8, 16, 32, 64)},
}  # fmt: skip
T = TypeVar("T", Port, Param)
_TYPES = {stored: name for name, stored in _NAMES.items()}


def to_text(graph: Graph, catalog: Catalog, notes: tuple[str, ...] = ()) -> str:
    """A graph as a `.nnir` file with the definitions that it needs beside irlang's own.

    notes: its first lines. Arrays that no text could hold are left out: `save` puts them into a
    file.
    """
    if not graph.outputs:
        graph = with_loss_shown(graph)  # the language has no model without a result
    model = to_ast(graph)
    comments = tuple(f"# {' '.join(note.split())}" for note in notes)
    return print_file(ast.File((*_own(graph, catalog), model), 1, comments=comments))


def _own(graph: Graph, catalog: Catalog) -> list[ast.Op]:
    """The definitions that are not irlang's own: those of calls, and those that they call."""
    found: dict[str, ast.Op] = {}
    waiting = [node.op for node in graph.nodes]
    while waiting:
        op = waiting.pop()
        if op.name in found or builtin().op(op.name) == op:
            continue
        found[op.name] = op
        called = (part.function for part in ast.walk(op) if isinstance(part, ast.Call))
        waiting += [known for name in called if (known := catalog.op(name)) is not None]
    return list(found.values())


def _is_array(param: Param) -> bool:
    return param.initial is not None and param.initial.kind == "array"


def save(case: Case, path: Path, notes: tuple[str, ...] = ()) -> None:
    """Writes `path` (a `.nnir` file) and its `.safetensors`.

    What has values that leave its range, as those at the ends of a type may, has none in the text.
    A case that is written otherwise than is usual, or has values at edges, says so in lines.
    """
    notes = (*notes, *((_EDGE,) if case.edge else ()))
    notes = (*notes, *((_BOLD,) if case.manner.bold else ()))
    notes = (*notes, *((f"{_TURN}{case.manner.turn}",) if case.manner.turn else ()))
    beside, words = path.with_suffix(".safetensors"), spelled(case.graph)
    long = {
        name: case.params[name] for name, param in case.graph.params.items() if _is_array(param)
    }
    params = {
        name: replace(param, initial=Initial("data", (beside.name, words[name])))
        if name in long
        else param
        for name, param in case.graph.params.items()
    }
    graph = replace(
        case.graph,
        inputs={n: _open(port, case.inputs[n]) for n, port in case.graph.inputs.items()},
        params={n: _open(param, case.params[n]) for n, param in params.items()},
    )
    path.write_text(to_text(graph, case.catalog, notes), "utf-8")
    arrays = {words[name]: array for name, array in {**case.inputs, **long}.items()}
    types = {words[name]: info.dtype for name, info in case.graph.values.items()}
    beside.write_bytes(packed(arrays, types))


def _open(one: T, array: Array) -> T:
    """An input or parameter without the range that its values leave."""
    if one.within is None or not beyond(array, one.within).any():
        return one
    return replace(one, within=None)


def packed(arrays: Mapping[str, Array], types: Mapping[str, str]) -> bytes:
    """Arrays by name as the bytes of a safetensors file; types in the language's words."""
    header: dict[str, Any] = {}
    body = b""
    for name, array in arrays.items():
        if types[name] in _NAMES:
            data = np.ascontiguousarray(array).tobytes()
            place = [len(body), len(body) + len(data)]
            header[name] = {
                "dtype": _NAMES[types[name]], "shape": list(array.shape), "data_offsets": place,
            }  # fmt: skip
            body += data
    text = json.dumps(header).encode("utf-8")
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + body


def manner_of(path: Path) -> Manner:
    """The manner in which a `.nnir` file says that it is to be written."""
    lines = _comments(path)
    turns = [found[1] for line in lines if (found := re.fullmatch(rf"# {_TURN}(\d{{1,4}})", line))]
    return Manner(f"# {_BOLD}" in lines, int(turns[0]) if turns else 0)


def is_edge(path: Path) -> bool:
    """Whether a `.nnir` file says that it has values at the edges of their types on purpose."""
    return f"# {_EDGE}" in _comments(path)


def target_of(path: Path) -> str | None:
    """The target that the first line of a finding names; None of other files."""
    told = re.match(r"# [a-z]+: (\S+), ", next(iter(_comments(path)), ""))
    return told[1] if told else None


def is_of_gradients(path: Path) -> bool:
    """Whether a finding says that it is seen where gradients are asked for."""
    return f"# {OF_GRADIENTS}" in _comments(path)


def is_invalid(path: Path) -> bool:
    """Whether a finding is that an invalid call is not refused: its model is no valid one."""
    return f"# {INVALID}" in _comments(path)


def _comments(path: Path) -> list[str]:
    """The comments that a file begins with."""
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD).decode("utf-8", "replace")
    except OSError:  # it is told when it is read as a model
        return []
    return list(itertools.takewhile(lambda line: line.startswith("#"), head.splitlines()))


def load_beside(path: Path) -> dict[str, Array]:
    """The arrays of the safetensors file beside a `.nnir` file; none where there is none."""
    beside = path.with_suffix(".safetensors")
    if path.suffix != ".nnir" or not beside.is_file():
        return {}
    if beside.stat().st_size > _MOST_BYTES:
        raise fail("file.inputs", f"{beside} is too large to be read")
    try:
        tensors = safetensors.deserialize(beside.read_bytes())  # type: ignore[no-untyped-call]
    except (safetensors.SafetensorError, OSError, ValueError) as error:
        raise fail("file.inputs", f"{beside} cannot be read: {error}") from None
    found = {}
    for name, tensor in tensors:
        dtype = _TYPES.get(tensor["dtype"])
        if dtype is None:
            told = f"`{name}` in {beside} is of type {tensor['dtype']}, which there is not"
            raise fail("file.inputs", told, help=f"types are {', '.join(_TYPES)}")
        flat = np.frombuffer(tensor["data"], dtype=DTYPES[dtype].numpy)
        found[name] = flat.reshape(tensor["shape"])
    return found
