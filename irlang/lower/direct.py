"""Whether a program hands its one call to the target's own operator as it is.

Where a rule composes an operator of several, or computes what it passes on, it is the rule that
takes an invalid argument, not the target: nothing follows from such a program being run.
"""

from __future__ import annotations

import ast
import functools
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from irlang.lower.labels import numbered
from irlang.lower.lower import Lowered

# Which only change the layout, or say what is known of it.
_MOVING = frozenset(
    {"transpose", "permute", "Transpose", "dimshuffle", "movedim", "contiguous"}
    | {"patternbroadcast", "addbroadcast", "unbroadcast"}
)
_AROUND = frozenset(
    {"expand_dims", "squeeze", "cast", "to", "astype", "bias_add", "Cast", "Squeeze", "Unsqueeze"}
    | {"bitcast"}
)  # which do where they stand beside another
# A number as a tensor of a type, and what stands for a tensor that is not given.
_WRAPPING = frozenset({"constant", "tensor", "asarray", "array", "zeros", "ones", "empty", "full"})
# What keeps a tensor that a step changes, what takes the step, what runs a block without asking
# what it is given, and arrays of MXNet's elder kind.
_STEPPING = frozenset(
    {"Variable", "convert_to_tensor", "build", "assign", "apply_gradients", "update", "copy"}
    | {"as_nd_ndarray", "as_np_ndarray", "hybrid_forward"}
)
_RESHAPING = "reshape"  # the operator
_WRITTEN = frozenset({"reshape", "Reshape"})  # by which a rule says itself what comes out
# Complex numbers as pairs of real ones, and back.
_PARTS = frozenset(
    {"real", "imag", "stack", "complex", "view_as_real", "view_as_complex", "resolve_conj"}
    | {"contiguous"}
)
_CONVERTING = frozenset({"cast", "to", "astype"})
_INT32 = 6  # of ONNX's element types
_FRAMING = _MOVING | _AROUND | _WRAPPING | _STEPPING | _WRITTEN | _PARTS
_SIGNS = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%",
    ast.Pow: "**", ast.MatMult: "@", ast.LShift: "<<", ast.RShift: ">>", ast.BitAnd: "&",
    ast.BitOr: "|", ast.BitXor: "^",
}  # fmt: skip
# Which put parts of weights into the order of the target's own, or into one.
_CHOOSING = frozenset(
    {"gather", "take", "index_select", "concat", "concatenate", "Gather", "Concat"}
)
_PASSING = _FRAMING | _CHOOSING
_PROGRAMS = 64  # whose text is kept as it was read: several things are asked of one
# By which what is found is filled up to a size, and what it is filled with.
_JOINING = frozenset({"concat", "cat", "concatenate", "Concat"})
_FILLING = frozenset({"fill", "full"})
# By which all that an operator has given becomes one number, behind a loss of samples.
_GATHERING = frozenset({"mean", "sum", "reduce_mean", "reduce_sum"})
_COMPUTED = (ast.BinOp, ast.Compare, ast.Subscript, ast.BoolOp, ast.IfExp)


def is_direct(
    lowered: Lowered,
    shaped: bool = False,
    ordered: bool = False,
    framed: bool = False,
    gathered: bool = False,
    operator: str = "",
) -> bool:
    """Whether the program is one operator of the target's, and its inputs as they come.

    shaped: whether these may be of another shape, as where a number is the matter. ordered: whether
    their parts may be in another order, as where a size is. framed: whether all of them may be, and
    results be put together, as where elements are. gathered: whether results may become one number,
    as where something is refused or not. operator: that of the call, which may be to reshape.
    """
    if gathered:
        lowered = _ungathered(lowered)
    if isinstance(lowered.code, str):
        body = (part for node in _statements(lowered.code) for part in ast.walk(node))
        if any(isinstance(part, _COMPUTED) and not _picks(part, shaped) for part in body):
            return False
    own = _own(lowered, shaped or framed)
    if ordered or framed:
        # An element is what it is beside others, but it may not be among those that are chosen.
        around = _CHOOSING if ordered else _JOINING
        own = [kind for kind in own if kind not in around] or own
    return len(own) == 1 and (own[0] not in _WRITTEN or operator == _RESHAPING)


def _ungathered(lowered: Lowered) -> Lowered:
    """The program without the sum or mean of all that it gives, which refuses nothing: no element,
    and no shape, as a loss of samples gives that is averaged beside it.
    """
    if isinstance(lowered.code, bytes):
        return lowered
    tree = ast.parse(lowered.code)
    return replace(lowered, code=ast.unparse(_Gathered().visit(tree)))


def _own(lowered: Lowered, shaped: bool) -> list[str]:
    """The operators' names without what stands around them."""
    kinds = _kinds(lowered)
    held = [kind for kind in kinds if kind not in _WRAPPING | _STEPPING] or kinds
    own = [kind for kind in held if kind not in _MOVING] or held
    around = _AROUND | _WRITTEN | _PARTS if shaped else _AROUND
    return [kind for kind in own if kind not in around] or own


def _picks(part: ast.AST, shaped: bool) -> bool:
    """Whether something is one of several, by its number: of the results of an operator, or, where
    inputs may be shaped, of channels; or is all of a tensor, turned round.
    """
    if not isinstance(part, ast.Subscript) or not (shaped or isinstance(part.value, ast.Call)):
        return False
    at = part.slice
    places = at.elts if isinstance(at, ast.Tuple) else [at]
    return all(isinstance(one, ast.Constant) or (shaped and _turns(one)) for one in places)


def _turns(at: ast.AST) -> bool:
    """Whether all elements along an axis are read, from either end."""
    match at:
        case ast.Slice(lower=None, upper=None, step=None):
            return True
        case ast.Slice(upper=None, step=ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=1))):
            return True
    return False


def reads(lowered: Lowered, name: str) -> bool:
    """Whether an operator of the program takes an input; not one that is a result as it is."""
    if isinstance(lowered.code, bytes):
        nodes = _model(lowered.code).graph.node
        return any(name in node.input for node in nodes if node.op_type != "Identity")
    parts = (part for node in _statements(lowered.code) for part in ast.walk(node))
    within = (inner for part in parts if isinstance(part, ast.Call) for inner in ast.walk(part))
    return any(isinstance(inner, ast.Name) and inner.id == name for inner in within)


def takes_as_it_is(lowered: Lowered, name: str) -> bool:
    """Whether an operator of the program takes an input itself, and not what was made of it, be it
    one of a list.
    """
    if isinstance(lowered.code, bytes):
        nodes = _model(lowered.code).graph.node
        return any(name in node.input for node in nodes if node.op_type not in _PASSING)
    parts = (part for node in _statements(lowered.code) for part in ast.walk(node))
    calls = (part for part in parts if isinstance(part, ast.Call))
    given = (
        argument
        for call in calls
        if getattr(call.func, "attr", "") not in _PASSING
        for argument in (*call.args, *(keyword.value for keyword in call.keywords))
    )
    listed = (
        one
        for argument in given
        for one in (argument.elts if isinstance(argument, ast.List | ast.Tuple) else [argument])
    )
    return any(isinstance(one, ast.Name) and one.id == name for one in listed)


def operators(lowered: Lowered) -> list[str]:
    """The names of the operators of a program, each once, as the target has them."""
    return list(dict.fromkeys(_kinds(lowered)))


def shortens(lowered: Lowered) -> bool:
    """Whether integers are converted to 32 bits, of which those beyond become others."""
    if isinstance(lowered.code, bytes):
        casts = (node for node in _model(lowered.code).graph.node if node.op_type == "Cast")
        return any(a.i == _INT32 for node in casts for a in node.attribute if a.name == "to")
    casts = (call for call in _calls(lowered.code) if call.func.attr in _CONVERTING)
    given = (part for call in casts for a in (*call.args, *call.keywords) for part in ast.walk(a))
    return any("int32" in (getattr(p, "attr", ""), getattr(p, "value", "")) for p in given)


def named(lowered: Lowered) -> list[str]:
    """The operators that somebody would name the program after, each once: signs of arithmetic
    where nothing else is called but what changes layouts and types.
    """
    own = _own(lowered, shaped=True)
    return list(dict.fromkeys((_FRAMING.issuperset(own) and signs(lowered)) or own))


def signs(lowered: Lowered) -> list[str]:
    """The signs of arithmetic in a program, each once."""
    if isinstance(lowered.code, bytes):
        return []
    parts = (part for node in _statements(lowered.code) for part in ast.walk(node))
    found = (_SIGNS.get(type(part.op)) for part in parts if isinstance(part, ast.BinOp))
    return [sign for sign in dict.fromkeys(found) if sign is not None]


def says(lowered: Lowered) -> str:
    """What is handed over beside the tensors: the operator's name and its arguments."""
    if isinstance(lowered.code, bytes):
        graph = _model(lowered.code).graph
        moving = _moving(node.op_type for node in graph.node)
        nodes = [
            (node.op_type, list(node.attribute), [bool(name) for name in node.input])
            for node in graph.node
            if node.op_type not in moving
        ]
        return f"{nodes} {list(graph.initializer)}"
    constants = {name: array.tolist() for name, array in lowered.params.items()}
    calls = _calls(lowered.code)
    moving = _moving(call.func.attr for call in calls)
    own = [
        (
            call.func.attr,
            list(map(_plain, call.args)),
            [(k.arg, _plain(k.value)) for k in call.keywords],
        )
        for call in calls
        if call.func.attr not in moving
    ]
    return f"{own} {constants}"


def numbers(lowered: Lowered) -> Counter[float]:
    """The numbers that are handed over, in single precision, and how often each of them is."""
    plain = [array for array in _arrays(lowered) if array.dtype.kind in "iufb"]
    return Counter(float(np.float32(n)) for array in plain for n in array.ravel())


def lists(lowered: Lowered) -> Counter[tuple[Any, ...]]:
    """The lists of numbers that are handed over, and how often each of them is."""
    found = [tuple(array.tolist()) for array in _arrays(lowered) if array.ndim == 1]
    if not isinstance(lowered.code, bytes):
        parts = (part for call in _calls(lowered.code) for part in ast.walk(call))
        written = (part for part in parts if isinstance(part, ast.List | ast.Tuple))
        found += [tuple(map(_number, one.elts)) for one in written]
    return Counter(found)


def _arrays(lowered: Lowered) -> list[np.ndarray[Any, np.dtype[Any]]]:
    if isinstance(lowered.code, bytes):
        import onnx

        graph = _model(lowered.code).graph
        found = [onnx.numpy_helper.to_array(one) for one in graph.initializer]
        moving = _moving(node.op_type for node in graph.node)
        told = (node for node in graph.node if node.op_type not in moving)
        for attribute in (a for node in told for a in node.attribute):
            value = onnx.helper.get_attribute_value(attribute)
            if isinstance(value, (int, float, list)) and value != []:
                found.append(np.asarray(value))
            elif isinstance(value, bytes) and (labels := numbered(value.decode())):
                found.append(np.asarray(labels))
        return found
    calls = _calls(lowered.code)
    moving = _moving(call.func.attr for call in calls)
    parts = [part for call in calls for part in _given(call, moving)]
    written = (_number(part) for part in parts)
    texts = (part.value for part in parts if isinstance(part, ast.Constant))
    equations = (numbered(text) for text in texts if isinstance(text, str))
    given = [np.asarray(one) for one in (*written, *equations) if one not in (None, [])]
    return [*given, *lowered.params.values()]


def _moving(names: Iterable[str]) -> frozenset[str]:
    """The operators that only change the layout, unless there are no others that do something."""
    return _MOVING if set(names) - _MOVING - _WRAPPING - _STEPPING else frozenset()


def _given(part: ast.AST, moving: frozenset[str]) -> Iterator[ast.AST]:
    """An expression and its parts, but for the places at which something is read, and for how it is
    laid out; the 2 of -2 is none.
    """
    yield part
    inside = list(ast.iter_child_nodes(part)) if _number(part) is None else []
    if isinstance(part, ast.Call) and getattr(part.func, "attr", "") in moving:
        inside = [part.func, *part.args[:1]]  # what is laid out, be that a method's or an argument
        inside = [one for one in inside if _number(one) is None]
    for inner in inside:
        if not (isinstance(part, ast.Subscript) and inner is part.slice):
            yield from _given(inner, moving)


def _number(part: ast.AST) -> int | float | None:
    """The number that an expression is, if it is one."""
    match part:
        case ast.Constant(value=int() | float() as value):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)):
            return -value
    return None


def _plain(argument: ast.expr) -> str:
    """An argument as text; a tensor is no more than that."""
    tensor = isinstance(argument, (ast.Name, ast.Call))
    return "tensor" if tensor else ast.dump(argument)


def _kinds(lowered: Lowered) -> list[str]:
    """The operators' names, as often as they are called."""
    if isinstance(lowered.code, bytes):
        graph = _model(lowered.code).graph
        return [node.op_type for node in _beside_filling(graph)]
    return [call.func.attr for call in _calls(lowered.code)]


def _beside_filling(graph: Any) -> list[Any]:
    """The nodes but for those by which something is filled up with one number, a bias with zeros or
    what was found to a size, and cut off there; all where there are no others.
    """
    import onnx

    stored = {one.name: one for one in graph.initializer}
    filled: set[str] = set()
    left = []
    for node in graph.node:
        given = [name for name in node.input if name not in stored]
        fillings = (onnx.numpy_helper.to_array(stored[n]) for n in node.input if n in stored)
        joins = node.op_type == "Concat" and len(given) == 1 < len(node.input)
        if joins and all(len(np.unique(one)) < 2 for one in fillings):
            filled |= set(node.output)
            continue
        if node.op_type == "Slice" and given[:1] and given[0] in filled:
            continue
        left.append(node)
    return left or list(graph.node)


@functools.lru_cache(_PROGRAMS)
def _model(code: bytes) -> Any:
    import onnx

    return onnx.load_from_string(code)


def _calls(code: str) -> list[Any]:
    body = (part for node in _statements(code) for part in ast.walk(node))
    return [p for p in body if isinstance(p, ast.Call) and isinstance(p.func, ast.Attribute)]


@functools.lru_cache(_PROGRAMS)
def _statements(code: str) -> list[ast.stmt]:
    """The function of a program without its description, without the modes it is run in, and
    without what makes room in a result for more than was found.
    """
    functions = (node for node in ast.parse(code).body if isinstance(node, ast.FunctionDef))
    body = [_Found().visit(node) for node in next(functions).body[1:]]
    return [part for node in body for part in (node.body if isinstance(node, ast.With) else [node])]


class _Found(ast.NodeTransformer):
    """What was found, in the place of what it was filled up and cut off to."""

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        self.generic_visit(node)
        match node.value:
            case ast.Call(ast.Attribute(attr=name), [ast.List(elts=[found, filling]), *_]):
                if name in _JOINING and _fills(filling):
                    return found
        return node


class _Gathered(ast.NodeTransformer):
    """What is made one number of, in the place of that number."""

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        match node.value:
            case ast.Call(ast.Attribute(attr=name), [ast.Call() as inner], []):
                if name in _GATHERING:
                    return ast.copy_location(ast.Assign(node.targets, inner), node)
        return node


def _fills(part: ast.AST) -> bool:
    """Whether an expression is one number everywhere, and reads no tensor."""
    calls = [inner for inner in ast.walk(part) if isinstance(inner, ast.Call)]
    return any(isinstance(c.func, ast.Attribute) and c.func.attr in _FILLING for c in calls)
