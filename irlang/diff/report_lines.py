"""A program of a target as straight lines: inputs, operators and results, with no function around.

A worker's program has functions that take and give arrays by name. Somebody who reads a report
wants what they would have typed. Both are the same operators on the same tensors: the text of the
model's function is taken over as it is, and that of `tensor` and `array`, where each is one
expression, stands where they were called; how gradients are written is its target's to say. The
model stays a function where a mode makes something of it as a whole. A program of another form has
no such lines.
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from irlang.graph import gradient_by
from irlang.lower.python_program import Slopes

_OWN = ("run", "gradients", "main", "tensor", "array")
_STANDARD = frozenset({"sys", "pathlib", "os"})
_NAMED = ("INPUTS", "PARAMS", "OUTPUTS")
_COUNT = "len(INPUTS) or len(values)"  # of those that a mode has several of
_Names: TypeAlias = tuple[Sequence[str], Sequence[str], Sequence[str]]


@dataclass(frozen=True, slots=True)
class Lines:
    """The parts of a script.

    imports: import statements and what follows them at once. helpers: functions that the operators
    call. given: the inputs and parameters. body: the operators, and what differentiates them.
    results: expressions for the results as arrays, by name, and for gradients by `d_NAME`.
    versions: expressions for the versions of packages, by name.
    """

    imports: str
    helpers: str
    given: str
    body: str
    results: Mapping[str, str]
    versions: Mapping[str, str]


def straight(
    code: str, written: Mapping[str, str], slopes: Slopes | None = None, real: Sequence[str] = ()
) -> Lines | None:
    """The lines of a program, or None if it is not of the form that has them.

    written: expressions for the arrays of the inputs and parameters, by name. slopes: how the last
    of what the model's function gives, a loss, is differentiated by what is `real` of those.
    """
    tree = ast.parse(code)
    functions = {one.name: one for one in tree.body if isinstance(one, ast.FunctionDef)}
    names = _names(tree)
    call = _called(functions["run"]) if "run" in functions else None
    if call is None or call.function not in functions or names is None:
        return None
    model = functions[call.function]
    into, out = (_expression(code, functions.get(name)) for name in ("tensor", "array"))
    end = model.body[-1]
    if into is None or out is None:
        return None
    if call.model or call.fixed or model.decorator_list or model.args.vararg is not None:
        return None if slopes else _around(code, tree, call, names, (into, out), written)
    if not isinstance(end, ast.Return) or not isinstance(end.value, ast.Tuple):
        return None
    inputs, params, outputs = names
    arguments = [argument.arg for argument in model.args.args]
    *returned, last = [ast.unparse(one) for one in end.value.elts]
    returned += [] if slopes else [last]
    if len(arguments) != len(inputs) + len(params) or len(returned) != len(outputs):
        return None
    body = _between(code, model, end)
    tensors = dict(zip([*inputs, *params], arguments, strict=True))
    pulled = {name: f"d_{tensors[name]}" for name in tensors if slopes and name in real}
    if slopes and (not body or re.search(rf"\b({'|'.join((*pulled.values(), 'tape'))})\b", body)):
        return None  # the names are taken
    others = [one for name, one in functions.items() if name not in (*_OWN, model.name)]
    called = [one for one in others if re.search(rf"\b{one.name}\(", body)]
    helpers = "\n\n\n".join(ast.get_source_segment(code, one) or "" for one in called)
    used = "\n".join((body, helpers, into, out, *written.values()))
    given = [
        _given(argument, written[name], _differentiated(into, slopes) if name in pulled else into)
        for name, argument in tensors.items()
    ]
    imports, versions = _imports(code, tree, used)
    given_back = returned
    if slopes is not None and slopes.function:
        given_back = _names_of(outputs, (*arguments, *pulled.values(), model.name))
    results = {
        name: _in_place(out, text if text.isidentifier() else f"({text})")
        for name, text in zip(outputs, given_back, strict=True)
    }
    if slopes is not None and slopes.function:
        body = f"{body}\nreturn {last}, [{', '.join(returned)}]"
        body = _block(f"def {model.name}({', '.join(arguments)}):", body)
        places = tuple(n for n, name in enumerate(tensors) if name in pulled)
        taken = slopes.taken.format(
            function=model.name, arguments=", ".join(arguments), places=places,
            results=", ".join(given_back), slopes=", ".join(pulled.values()),
        )  # fmt: skip
        body = f"{body}\n\n\n{taken}"
        results |= {gradient_by(name): _in_place(out, slope) for name, slope in pulled.items()}
    elif slopes is None:
        body = _block(call.within, body)
    else:
        body = _differentiating(slopes, body, last, {tensors[n]: d for n, d in pulled.items()})
        results |= {
            gradient_by(name): _in_place(out, slopes.slope.format(slope=slope))
            for name, slope in pulled.items()
        }
    return Lines(imports, helpers, "\n".join(given), body, results, versions)


def _around(
    code: str,
    tree: ast.Module,
    call: _Call,
    names: _Names,
    ends: tuple[str, str],
    written: Mapping[str, str],
) -> Lines | None:
    """The lines around functions that stay: the model's, and what a mode makes of it.

    names, ends: of the tensors, and what makes tensors of arrays and arrays of them.
    """
    (inputs, params, outputs), (into, out) = names, ends
    own = [
        one
        for one in tree.body
        if isinstance(one, ast.FunctionDef | ast.ClassDef) and one.name not in _OWN
    ]
    models = [one for one in own if isinstance(one, ast.FunctionDef) and _is_model(one)]
    if len(models) != 1:
        return None
    (model,) = models
    arguments = [argument.arg for argument in model.args.args]
    if len(arguments) != len(inputs) + len(params):
        return None
    helpers = "\n\n\n".join(_text(code, one, one is model) for one in own)
    helpers = helpers.replace(_COUNT, str(len(inputs) or "len(values)"))
    if re.search(rf"\b({'|'.join(_NAMED)})\b", helpers):
        return None  # it is told which tensors there are
    tensors = dict(zip([*inputs, *params], arguments, strict=True))
    given = [_given(tensors[name], written[name], into) for name in tensors]
    taken = (*arguments, *(one.name for one in own), *(["fixed"] if call.fixed else []))
    results = _names_of(outputs, taken)
    handed = ", ".join(arguments)
    above, ran = "", f"{call.function}({f'{call.model}, [{handed}]' if call.model else handed})"
    if call.fixed:
        of = ", ".join(arguments[: len(inputs)])
        above = f"\ndef fixed({of}):\n    return {model.name}({handed})\n\n\n"
        ran = re.sub(r"\*?\bvalues\b", lambda m: of if m[0][0] == "*" else f"[{of}]", call.fixed)
    told = f"{', '.join(results)}{',' * (len(results) == 1)} = {ran}"
    body = above + _block(call.within, told)
    used = "\n".join((body, helpers, into, out, *written.values()))
    imports, versions = _imports(code, tree, used)
    shown = {n: _in_place(out, one) for n, one in zip(outputs, results, strict=True)}
    return Lines(imports, helpers, "\n".join(given), body, shown, versions)


def _names_of(outputs: Sequence[str], taken: Sequence[str]) -> list[str]:
    """What results are called outside of a function."""
    if all(name.isidentifier() and name not in taken for name in outputs):
        return list(outputs)
    return [f"result{place}" for place in range(len(outputs))]


def _is_model(function: ast.FunctionDef) -> bool:
    """Whether a function tells what it takes and gives, and gives several at once."""
    end = function.body[-1]
    gives = isinstance(end, ast.Return) and isinstance(end.value, ast.Tuple)
    return gives and bool(ast.get_docstring(function))


def _text(code: str, one: ast.FunctionDef | ast.ClassDef, bare: bool) -> str:
    """A definition's text with what stands above it; bare: without what describes it."""
    lines = code.splitlines()
    above = [decorator.lineno for decorator in one.decorator_list]
    first, last = min([*above, one.lineno]) - 1, one.end_lineno
    described = one.body[0]
    if bare and ast.get_docstring(one) is not None:
        return "\n".join(lines[first : described.lineno - 1] + lines[described.end_lineno : last])
    return "\n".join(lines[first:last])


@dataclass(frozen=True, slots=True)
class _Call:
    """How `run` calls the model: the function's name, and the head of a `with` around it.

    model: the model's name, where that is handed to a function that makes something of it. fixed:
    what is made of the function `fixed` of the inputs alone, whose parameters are constants, and
    called with `values`.
    """

    function: str
    within: str
    model: str = ""
    fixed: str = ""


def _called(run: ast.FunctionDef) -> _Call | None:
    match run.body[1:]:
        case [ast.Assign(), ast.AugAssign(), ast.With(items=items, body=[inner]), ast.Return()]:
            within = f"with {', '.join(map(ast.unparse, items))}:"
        case [ast.Assign(), ast.AugAssign(), inner, ast.Return()]:
            within = ""
        case [
            ast.FunctionDef(body=[ast.Return(value=ast.Call(func=ast.Name(id=name)))]),
            ast.Assign(), ast.Assign(value=value), ast.Return(),
        ]:  # fmt: skip
            return _Call(name, "", fixed=ast.unparse(value))
        case _:
            return None
    match inner:
        case ast.Assign(value=ast.Call(func=ast.Name(id=name), args=[ast.Starred()])):
            return _Call(name, within)
        case ast.Assign(value=ast.Call(ast.Name(id=name), [ast.Name(id=model), ast.Name()])):
            return _Call(name, within, model)
    return None


def _names(tree: ast.Module) -> _Names | None:
    """The names of the inputs, the parameters and the results."""
    found: dict[str, Sequence[str]] = {}
    for one in tree.body:
        match one:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if name in _NAMED:
                found[name] = ast.literal_eval(value)
    known = [found.get(name) for name in _NAMED]
    inputs, params, outputs = known
    if inputs is None or params is None or outputs is None:
        return None
    return inputs, params, outputs


def _expression(code: str, function: ast.FunctionDef | None) -> str | None:
    """What a function of `name` and `value` gives, if that is all it does."""
    match function and function.body:
        case [ast.Return(value=ast.expr() as value)]:
            return ast.get_source_segment(code, value)
    return None


def _between(code: str, model: ast.FunctionDef, end: ast.Return) -> str:
    """A function's text from what describes it to its last statement."""
    first = model.body[0]
    assert isinstance(first, ast.Expr)
    lines = code.splitlines()[first.end_lineno : end.lineno - 1]
    return textwrap.dedent("\n".join(lines)).strip("\n")


def _in_place(template: str, text: str) -> str:
    return re.sub(r"\bvalue\b", lambda _: text, template)


def _block(head: str, body: str) -> str:
    return f"{head}\n{textwrap.indent(body, '    ')}" if head and body else body


def _differentiating(slopes: Slopes, body: str, loss: str, pulled: Mapping[str, str]) -> str:
    """The operators and what differentiates the loss; pulled: what gradients are called."""
    if not loss.isidentifier():
        body, loss = f"{body}\nloss = {loss}", "loss"
    wanted, found = ", ".join(pulled), ", ".join(pulled.values())
    body = _block(slopes.within.format(wanted=wanted), body)
    return f"{body}\n{slopes.taken.format(slopes=found, loss=loss, wanted=wanted)}"


def _differentiated(into: str, slopes: Slopes | None) -> str:
    return slopes.tensor.format(tensor=into) if slopes is not None else into


def _given(name: str, array: str, into: str) -> str:
    """The line that makes a tensor."""
    if array.startswith("np."):
        into = into.replace("(np.array(value))", "(value)")  # it is an array of its own already
    if len(re.findall(r"\bvalue\b", into)) == 1:
        return f"{name} = {_in_place(into, array)}"
    return f"{name} = {array}\n{name} = {_in_place(into, name)}"


def _imports(code: str, tree: ast.Module, used: str) -> tuple[str, dict[str, str]]:
    """What stands before the names of the inputs, without the imports that nothing uses: neither
    that text nor what is set here.
    """
    head = _head(tree)
    settings = [ast.unparse(one) for one in head if isinstance(one, ast.Assign | ast.Expr)]
    used = "\n".join((used, *settings))
    standard, versions = ["import sys"], {}
    lines: list[str] = []
    for one in head:
        text = ast.get_source_segment(code, one) or ""
        if isinstance(one, ast.Import | ast.ImportFrom):
            [alias] = one.names
            known = alias.asname or alias.name
            ours = alias.name in _STANDARD or getattr(one, "module", "") in _STANDARD
            if isinstance(one, ast.Import) and "." not in alias.name and not ours:
                versions[alias.name] = f"{known}.__version__"
            elif not re.search(rf"\b{re.escape(known)}\b", used):
                continue
            if ours:
                standard.append(text)
                continue
        elif lines and lines[-1].startswith(("import ", "from ")):
            text = f"\n{text}"  # what is set once
        lines.append(text)
    return "\n".join([*sorted(standard), "", *lines]), versions


def _head(tree: ast.Module) -> list[ast.stmt]:
    """The statements before the names of the inputs: imports, and what is set once."""
    statements = tree.body[1:]
    ends = (n for n, one in enumerate(statements) if ast.unparse(one).startswith("INPUTS ="))
    return statements[: next(ends)]
