"""Numbers that stand in calls for tensors: which element type each has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from irlang import ast
from irlang.dtypes import CLASSES, DTYPES

_KINDS = {"bool": ("bool",), "i64": ("int", "real"), "f32": ("real",)}


def number_type(
    op: ast.Op | ast.Block, dtype: str, value: Any, given: Mapping[str, Sequence[str]]
) -> str:
    """The element type of a number that stands for an input of `op`.

    dtype: the input's, in the definition: a type, a variable for one, or a class. given: the types
    of the tensors of the call, by their inputs. The type is that of the tensors of the same
    variable, else of one of the call's that the variable may stand for, else the number's own.
    """
    variables = dict(op.dtypes) if isinstance(op, ast.Op) else {}
    if dtype not in variables:
        return dtype if dtype in DTYPES else {"int": "i64", "bool": "bool"}.get(dtype, "f32")
    peers = [t for i in op.inputs if i.type.dtype == dtype for t in given.get(i.name, ())]
    if peers:
        return peers[0]
    kind = "bool" if isinstance(value, bool) else "i64" if isinstance(value, int) else "f32"
    allowed = CLASSES.get(variables[dtype], frozenset())
    near = [t for types in given.values() for t in types if t in allowed]
    near = [t for t in near if DTYPES[t].kind in _KINDS[kind]]
    return (near or ([kind] if kind in allowed else ["f32"]))[0]
