"""The text of an issue: what a framework does, what is right and why, and who else agrees."""

from __future__ import annotations

import math
import platform
import re
import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np

from irlang import ast
from irlang.adjoint_graph import PREFIX, Pullback, gradient_graph, prepare
from irlang.certain import certain
from irlang.diagnostics import InvalidInput
from irlang.diff.calls import open_values
from irlang.diff.found import Found
from irlang.diff.kinks import SLOPES
from irlang.diff.reduce_files import to_text
from irlang.diff.report_numbers import all_expected, all_got, dtype_of, expected, got
from irlang.diff.report_program import program_of
from irlang.diff.report_required import required
from irlang.diff.report_why import explain
from irlang.diff.report_words import anywhere, first_words, last_words, together
from irlang.diff.spilled import ON_THE_WAY
from irlang.diff.unfold import is_composed
from irlang.diff.verdict import NOT_REPEATED, Verdict, only_shapes
from irlang.equation_call import for_call
from irlang.equation_text import show as equations_of
from irlang.equations import Draw, Expansion
from irlang.graph import Graph, Node, differentiated
from irlang.graph_text import to_ast
from irlang.interp import reference
from irlang.interp.plain import load
from irlang.interp.program import run
from irlang.lower.called import called
from irlang.lower.direct import named, operators, signs
from irlang.lower.lower import lower
from irlang.lower.target import describe
from irlang.parser.printer import print_statement

_SHORT = 100  # characters of a title that attributes, or what a framework says, may take
_LONG = 120  # lines of a script that is named rather than shown
_HALF = 0.01  # what half of the digits may be off by, with room
_FEW = 3  # calls whose definitions are shown
_READABLE = 30  # lines of equations beyond which the definition's own words are shown
_PARTS = 8  # operators of a composition that are named
_MOST = 16  # elements of a result that are shown
_MESSAGE = 1500  # characters of what a framework says
_WIDTH = 100  # of a line of that
_LOST = {
    "crash": "the process dies", "timeout": "there is no answer", "memory": "memory runs out",
    "refused": "a valid program is refused", "accepted": "an invalid program is accepted",
}  # fmt: skip
# What is amiss with a result that no element tells, by how the message begins.
_AMISS = {
    "shape ": "the result is of another shape", "type ": "the result is of another type",
    "the program gives no": "a result is missing",
}  # fmt: skip
_NOT_SO = "the result is not as the definition ensures"
_SHAPES = ("shape ", "type ")
_SAID = frozenset({"refused", "crash", "accepted"})  # whose message is a reason


def title(found: Found) -> str:
    """One line: who, what, and the element that shows it."""
    return _title(found) if found.repeated else f"{_title(found)} ({NOT_REPEATED})"


def _title(found: Found) -> str:
    v, count = found.verdict, len(found.reduced.graph.nodes)
    about = _program_of(found, count) if found.operator == "program" else _about(found)
    release = found.version.partition("-")[0]  # what stands behind it says how it was built
    head = f"{called(found.target, release)}: {about}"
    if v.verdict in _LOST:
        invalid = " of an invalid program" if found.fault and v.verdict != "accepted" else ""
        said = first_words(v.message, _SHORT) if v.verdict in _SAID else ""
        return f"{head}: {_LOST[v.verdict]}{invalid}{f' ({said})' if said else ''}"
    if v.message.startswith(_SHAPES):
        return f"{head} gives the {v.message}"
    short = {name: array for name, array in found.got.items() if 0 < array.size <= _FEW}
    if v.message and v.got is None and v.name in short:
        gave = all_got(short[v.name], dtype_of(found.reduced.graph, v.name))
        return f"{head} gives {gave} for {v.name}: {v.message.partition(': ')[2] or v.message}"
    if v.expected is None or v.got is None:
        return f"{head}: {v.message or v.verdict}".split("\n")[0][:160]
    place = f"[{', '.join(map(str, v.index or ()))}]" if v.index else ""
    other = f"where {called(found.plain)} gives" if found.plain else "not"
    return f"{head} gives {_given(found)} for {v.name}{place}, {other} {wanted(found)}"


def _about(found: Found) -> str:
    """The operator as its framework has it, or else by irlang's name beside that, and how it was
    called.
    """
    own, lowered = "", program_of(found, found.target)
    left = frozenset() if lowered is None else lowered.left
    told = found.attributes.items()
    given = ", ".join(f"{n} = {value}" for n, value in told if n.partition(".")[0] not in left)
    if found.verdict.stage != "backward":
        names = [] if lowered is None else named(lowered)
        names = [one for one in names if _alike(one) == _alike(found.operator)] or names
        own = together(names)
    said = given if len(given) <= _SHORT else ""
    spelt = together([one for one in found.operator.split(" + ") if one not in left])
    if not own or _alike(own) == _alike(spelt):
        return f"{own or spelt}({said})" if said else own or spelt
    return f"{own} ({', '.join(part for part in (spelt, said) if part)})"


def _program_of(found: Found, count: int) -> str:
    """A program of several calls: by their names where those are few."""
    lowered = program_of(found, found.target)
    names = [] if lowered is None else named(lowered)
    if found.verdict.stage == "backward" or not names:
        return f"a program of {count} calls"
    return f"{together(names)} ({count} calls)"


def _alike(name: str) -> str:
    return name.replace("_", "").lower()


def wanted(found: Found) -> str:
    """What is expected of the element, with the digits of its type; nothing where nothing is."""
    v, ball = found.verdict, found.expected.get(found.verdict.name)
    if v.expected is None:
        return ""
    whole = _whole(None if ball is None else ball.value, v.index)
    return whole or expected(v.expected, dtype_of(found.reduced.graph, v.name))


def _given(found: Found) -> str:
    """What was got there."""
    v = found.verdict
    if v.got is None:
        return ""
    whole = _whole(found.got.get(v.name), v.index)
    return whole or got(v.got, dtype_of(found.reduced.graph, v.name))


def _whole(array: Any, index: tuple[int, ...] | None) -> str:
    """An element of whole numbers, which a verdict has as a real; nothing of others."""
    if array is None or index is None or np.asarray(array).dtype.kind not in "iuO":
        return ""
    return str(np.asarray(array)[index])


def issue(found: Found, script: str, name: str) -> str:
    """The Markdown text. script: that of the target, and the name of its file."""
    parts = [f"# {title(found)}", "", *_what(found), "", *_how(found, script, name)]
    parts += ["", "## Expected, and why", "", *_why(found), "", "## Actual", "", *_actual(found)]
    parts += ["", "## Versions and other implementations", "", *_others(found), ""]
    parts += ["## The program", "", "```", _program(found), "```", ""]
    return "\n".join(parts)


def _program(found: Found) -> str:
    return to_text(found.reduced.graph, found.reduced.catalog).strip()


def _what(found: Found) -> list[str]:
    nodes = found.reduced.graph.nodes
    values = found.reduced.values.values()
    elements = sum(array.size for array in values)
    calls = " and ".join(f"`{node.op.name}`" for node in nodes[:4])
    size = f"{elements} element{'s' * (elements != 1)} of input"
    count = f"{len(nodes)} call{'s' * (len(nodes) != 1)}"
    lines = [f"The program below has {count} ({calls}) and {size}."]
    lowered = program_of(found, found.target)
    if lowered is not None and lowered.loose:
        lines.append("The sizes of its inputs are not known before it is run.")
    if lowered is not None and lowered.left:
        left = together(sorted(lowered.left))
        lines.append(f"No {left} is written: {called(found.target)} converts by itself there.")
    elif " + " in found.operator and found.verdict.verdict in _LOST:
        lines.append("With fewer calls it was not seen: it is these together that show it.")
    elif " + " in found.operator:
        lines.append(
            "Each call by itself, fed with the same numbers, is right: they are wrong only "
            "together, as after a fusion."
        )
    if not found.tried:
        lines.append(
            "**It was not repeated, nor made smaller**: the time of the campaign ended before it "
            "was run once more."
        )
    elif not found.repeated:
        lines.append(
            "**It was not repeated**: run once more in a process that had run nothing else, the "
            "program gave what is expected. What the process had run before may have to do with it."
        )
    if found.alike:
        plain = describe(found.target).plain == found.alike
        why = "without this mode, which" if ":" in found.target else "so that the optimiser"
        why = why if plain else "so that the backend"
        lines.append(f"{called(found.alike)} does the same {why} has not made it.")
    if found.cause:
        lines.append(
            f"The target keeps {found.cause}: what else is wrong for that is not reported again."
        )
    if found.within is not None:
        of = "the gradient of " * (found.within.verdict.stage == "backward")
        met = f"{of}`{found.within.operator}`"
        lines.append(f"It was met in {met}, which is computed by it there.")
    return lines + _composed(found)


def _composed(found: Found) -> list[str]:
    """What a call is written as where the target has no operator for it."""
    case = found.reduced
    if len(case.graph.nodes) > 1 or found.fault or not is_composed(case, found.target):
        return []
    lowered = lower(case.graph, found.target, case.catalog, case.params, manner=case.manner)
    many = [f"`{name}`" for name in (*operators(lowered), *signs(lowered))]
    if not 1 < len(many) <= _PARTS:
        return []
    return [
        f"The call is written as {', '.join(many[:-1])} and {many[-1]} for {called(found.target)}."
    ]


def _how(found: Found, script: str, name: str) -> list[str]:
    if not script:
        return ["## To reproduce", "", f"`irlang diff finding.nnir --targets {found.target}`"]
    if script.count("\n") > _LONG:
        return ["## To reproduce", "", f"Run `{name}`, which needs the framework and NumPy only."]
    return ["## To reproduce", "", "```python", script.strip(), "```"]


def _why(found: Found) -> list[str]:
    v = found.verdict
    nodes = found.reduced.graph.nodes
    if found.fault:
        return required(nodes[0], found.fault, found.requirement)
    lines = []
    if v.expected is not None:
        place = f"[{', '.join(map(str, v.index or ()))}]" if v.index else ""
        why = _plainly(found) if found.plain else _radius(found)
        lines += [f"`{v.name}{place}` is `{wanted(found)}`. {why}", ""]
        if v.message.startswith(SLOPES):
            lines[-2:] = [_between_slopes(f"{v.name}{place}", v), ""]
    else:
        lines += [*_results(found), ""]
    calls = [s for s in to_ast(found.reduced.graph).body if isinstance(s, ast.Assign)]
    for node, call in zip(nodes, calls, strict=True) if len(nodes) <= _FEW else ():
        equations = equations_of(_told(found, node.expansion(found.reduced.catalog))).strip()
        said = print_statement(call).strip()
        this = f"`{said}`" if len(nodes) > 1 and len(said) <= _SHORT else "this call"
        meant = ["```", equations, "```"]
        if equations.count("\n") >= _READABLE:
            meant = [f"> {line}".rstrip() for line in node.op.doc.strip().splitlines()]
        lines += [f"The definition of `{node.op.name}` says of {this}:", "", *meant, ""]
        lines += _left_open(node.expansion(found.reduced.catalog).drawn)
    if v.message.startswith(SLOPES):
        return lines
    if v.stage == "backward":
        for node in _graph(found).nodes:
            if isinstance(node, Pullback) and v.name in node.outputs and node.forward is not None:
                lines += [*_backward(node, node.forward), ""]
    return lines + _between(found) + _element(found)


def _told(found: Found, expansion: Expansion) -> Expansion:
    """What a call means, as it is told: without the radii that its equations speak of."""
    return for_call(certain(expansion, slopes=found.verdict.stage == "backward", simple=True))


def _plainly(found: Found) -> str:
    """Why anything is expected where a definition leaves everything open."""
    return (
        "The definition leaves it open, so that an implementation is free to choose; "
        f"{called(found.plain)} gives this for the same program. What compiles or transforms a "
        "program is to give what the program gives without it."
    )


def _between_slopes(name: str, verdict: Verdict) -> str:
    """What is right of a gradient where its equations say nothing, or allow the slopes of cases
    that exclude one another to be added up.
    """
    message = verdict.message
    if not math.isnan(verdict.got or 0.0):
        return (
            f"There is a kink, or cases of the definition meet: {message}, and `{name}` may be "
            "what is between these."
        )
    return (
        f"`{name}` is a finite number. The chain rule multiplies an infinity by 0 there, but the "
        f"results of the call change in proportion to a small step of this element: {message}, and "
        "what is between these may be taken for the gradient. NaN is not."
    )


def _left_open(drawn: Sequence[Draw]) -> list[str]:
    """What an equation reads that no target is asked for."""
    lines = []
    for one in drawn:
        law = f"{one.law}({', '.join(f'{number:g}' for number in one.params)})"
        lines += [f"`{one.tensor}` is left open: its elements are drawn from {law}.", ""]
    return lines


def _results(found: Found) -> list[str]:
    """The results of a valid program that gives none, as far as they are short."""
    graph = found.reduced.graph
    lines = ["The program is valid: every requirement of its definitions holds."]
    undetermined = open_values(graph, found.reduced.catalog)
    for name, ball in found.expected.items():
        array, dtype = np.asarray(ball.value), dtype_of(graph, name)
        shape = list(array.shape)
        if 0 < array.size <= _MOST and graph.outputs.get(name, name) not in undetermined:
            lines += ["", f"- `{name}` is `{all_expected(array, dtype)}`, of shape {shape}"]
        else:
            lines += ["", f"- `{name}` has the shape {shape}"]
    return lines


def _backward(node: Pullback, call: Node) -> list[str]:
    """What follows for the gradient of a call."""
    results = call.results()
    flowing = [n for n in node.equations.inputs if n.removeprefix(PREFIX) in results]
    names = ", ".join(f"`{name}`" for name in flowing)
    equations = equations_of(for_call(node.equations)).strip()
    if equations.count("\n") >= _READABLE:
        return ["From this its gradient follows by the chain rule."]
    said = f"From these follows its gradient, {names} being what flows back to its results:"
    return [said, "", "```", equations, "```"]


def _graph(found: Found) -> Graph:
    """The program, with the calls of its gradient where that is the matter."""
    case = found.reduced
    if found.verdict.stage != "backward":
        return case.graph
    return gradient_graph(prepare(case.graph, case.catalog)).graph


def _radius(found: Found) -> str:
    radius, lost = found.verdict.radius, found.verdict.message == ON_THE_WAY
    if not radius and not lost:
        return "No rounding is involved: the value is exact."
    name = {"bf16": "bfloat16", "f16": "float16", "f32": "float32", "f64": "float64"}
    told = found.verdict.name
    of = differentiated(told) if found.verdict.stage == "backward" else told
    info = found.reduced.graph.values.get(of)
    kind = name.get(info.dtype, "this type") if info is not None else "this type"
    if not radius:
        return f"It is exact, and within the range of {kind}; numbers on the way to it are not."
    if lost:
        halved = radius <= _HALF * abs(found.verdict.expected or 0.0)
        return (
            f"It is within the range of {kind}; numbers on the way to it are not. A formula that "
            f"keeps within is no further from it than `{radius:.3g}`"
            f"{', half of the digits' * halved}."
        )
    each = " of each call, one after the other," if len(found.reduced.graph.nodes) > 1 else ""
    return (
        f"No order of evaluation{each} in {kind}, with or without fused multiply-add, is further "
        f"from it than `{radius:.3g}`."
    )


def _between(found: Found) -> list[str]:
    """What calls hand to one another, where that is short: an element is told of the last alone."""
    case, graph = found.reduced, found.reduced.graph
    if found.verdict.stage == "backward" or found.verdict.index is None:
        return []
    inner = {name for node in graph.nodes for name in node.outputs if name}
    inner -= set(graph.outputs.values()) | set(open_values(graph, case.catalog))
    try:
        values = run(graph, case.values, case.catalog)
    except InvalidInput:
        return []
    lines = []
    for name in (name for name in values if name in inner):
        array = np.asarray(values[name])
        if 0 < array.size <= _MOST:
            lines.append(f"- `{name}` is `{all_expected(array, graph.values[name].dtype)}`")
    return ["In between:", "", *lines, ""] if lines else []


def _element(found: Found) -> list[str]:
    """The arithmetic of the element that is furthest off."""
    case, v, graph = found.reduced, found.verdict, _graph(found)
    if v.index is None:
        return []
    value = graph.outputs.get(v.name)
    node = next((n for n in graph.nodes if value in n.outputs), None)
    if node is None or value is None:
        return []
    shape = graph.values[value].shape
    if len(v.index) != len(shape) or any(i >= n for i, n in zip(v.index, shape, strict=True)):
        return []  # the element is the program's, whose call is judged as one of vectors
    try:
        values = run(graph, case.values, case.catalog)
        expansion = _told(found, node.expansion(case.catalog))
        fed = {formal: load(graph.values[name], values[name])
               for formal, name in node.feeds().items()}  # fmt: skip
        tensors = {**fed, **reference.evaluate(expansion, fed)}
    except InvalidInput:
        return []
    formal = next(f for f, name in node.results().items() if name == value)
    lines = explain(expansion, tensors, formal, v.index)
    return ["For this element:", "", "```", *lines, "```"] if lines else []


def _actual(found: Found) -> list[str]:
    v, graph = found.verdict, found.reduced.graph
    lines = []
    if v.got is not None:
        real = dtype_of(graph, v.name) != "bool"
        far = real and v.max_error is not None and math.isfinite(v.max_error)
        off = f", off by `{v.max_error:.3g}`" if far else ""
        lines.append(f"`{_given(found)}`{off}.")
    elif v.verdict == "accepted":
        lines.append("It runs, and nothing is said of it.")
    else:
        told = (said for start, said in _AMISS.items() if v.message.startswith(start))
        amiss = next(told, _NOT_SO)
        lines.append(f"{_LOST.get(v.verdict, amiss)}:".capitalize())
        lines += ["", *_quoted(v.message)]
    if v.verdict == "crash" and (printed := last_words(found.output)):
        lines += ["", "The last that it printed:", "", *_quoted(printed)]
    for name, array in found.got.items():
        dtype = dtype_of(graph, name)
        if only_shapes(found.target):
            lines += ["", f"- `{name}` has the type {array.dtype} and shape {list(array.shape)}"]
        elif 0 < array.size <= _MOST:
            lines.append("")
            if name in found.expected:
                wanted = all_expected(np.asarray(found.expected[name].value), dtype)
                lines.append(f"- `{name}` expected `{wanted}`")
            lines.append(f"- `{name}` got `{all_got(array, dtype)}`")
        elif v.verdict == "accepted":
            many = "numbers" if array.size else "no numbers,"
            lines += ["", f"- `{name}` got {many} of the shape {list(array.shape)}"]
    return lines


def _quoted(message: str) -> list[str]:
    """What a framework says between marks that it does not end itself."""
    longest = max(map(len, re.findall("`+", message)), default=0)
    marks = "`" * max(3, longest + 1)
    return [marks, *_wrapped(message), marks]


def _wrapped(message: str) -> list[str]:
    """What a framework says, in lines that can be read, and no more of it than is worth reading."""
    said = anywhere(message)
    text = said[:_MESSAGE] + (" …" if len(said) > _MESSAGE else "")
    return [part for line in text.splitlines() for part in textwrap.wrap(line, _WIDTH)] or [""]


_SAYS = {
    "agrees": "agrees with the definition", "rounding": "agrees with the definition",
    "unstable": "no verdict", "unspecified": "no verdict", "unsupported": "cannot run the program",
    "inaccurate": "differs by more than rounding explains", "wrong": "gives another result",
    "edge": "gives another result", "nonfinite": "gives another result",
    "crash": "its process dies", "timeout": "does not answer", "memory": "runs out of memory",
    "refused": "refuses it", "accepted": "runs it", "unconfirmed": "no verdict",
    "inconsistent": "gives another result",
    "warned": "warns of it",
}  # fmt: skip


def _version(found: Found, target: str) -> str:
    """Of a target, or of the framework of a mode that was asked without it."""
    of_modes = (v for t, v in found.versions.items() if describe(t).plain == target)
    return found.versions.get(target) or next(of_modes, found.version)


def _others(found: Found) -> list[str]:
    lines = []
    for target, verdict in {found.target: found.verdict.verdict, **found.others}.items():
        said = _SAYS.get(verdict, verdict)
        if only_shapes(target) and verdict in ("agrees", "rounding"):
            said = "infers the right type and shape"
        if target == found.plain:
            said = "gives what is expected here"
        if target in found.words:
            words = first_words(found.words[target], _WIDTH).replace("`", "'")
            said += f": `{words}`"
        lines.append(f"- {called(target, _version(found, target))}: {said}")
    return [*lines, f"- {platform.system()} {platform.machine()}"]
