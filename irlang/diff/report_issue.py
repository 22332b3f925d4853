"""The text of an issue: what a framework does, what is right and why, and who else agrees."""

from __future__ import annotations

import platform
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from irlang import ast
from irlang.adjoint_graph import PREFIX, Pullback, gradient_graph, prepare
from irlang.diagnostics import InvalidInput
from irlang.diff.reduce_files import to_text
from irlang.diff.report_why import explain, shown
from irlang.equation_text import show as equations_of
from irlang.interp import reference
from irlang.interp.plain import load
from irlang.interp.program import run
from irlang.parser.printer import print_file

if TYPE_CHECKING:
    from irlang.diff.finding import Found
    from irlang.graph import Graph, Node

_LONG = 120  # lines of a script that is named rather than shown
_LOST = {
    "crash": "the process dies", "timeout": "there is no answer", "memory": "memory runs out",
    "refused": "a valid program is refused", "accepted": "an invalid program is accepted",
}  # fmt: skip


def title(found: Found) -> str:
    """One line: who, what, and the element that shows it."""
    v = found.verdict
    given = ", ".join(f"{name} = {value}" for name, value in found.attributes.items())
    about = f"{found.operator}({given})" if given else found.operator
    head = f"{found.target} {found.version}: {about}"
    if v.verdict in _LOST:
        invalid = " of an invalid program" if found.fault and v.verdict != "accepted" else ""
        return f"{head}: {_LOST[v.verdict]}{invalid}"
    if v.expected is None or v.got is None:
        return f"{head}: {v.message or v.verdict}".split("\n")[0][:160]
    place = f"[{', '.join(map(str, v.index or ()))}]" if v.index else ""
    return f"{head} gives {_number(v.got)} for {v.name}{place}, not {_number(v.expected)}"


def _number(value: float) -> str:
    return shown(np.float64(value))


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
    if " + " in found.operator:
        lines.append(
            "Each call by itself is right: with the values between them as results, the "
            "disagreement goes. They are wrong only together, as after a fusion."
        )
    return lines


def _how(found: Found, script: str, name: str) -> list[str]:
    if not script:
        return ["## To reproduce", "", f"`irlang diff finding.nnir --targets {found.target}`"]
    if script.count("\n") > _LONG:
        return ["## To reproduce", "", f"Run `{name}`, which needs the framework and NumPy only."]
    return ["## To reproduce", "", "```python", script.strip(), "```"]


def _why(found: Found) -> list[str]:
    v = found.verdict
    lines = []
    if v.expected is not None:
        place = f"[{', '.join(map(str, v.index or ()))}]" if v.index else ""
        lines += [f"`{v.name}{place}` is `{_number(v.expected)}`. {_radius(found)}", ""]
    elif v.message:
        lines += [f"> {' '.join(v.message.split())[:400]}", ""]
    nodes = found.reduced.graph.nodes
    if found.fault:
        return _required(nodes[0], found.fault)
    for node in nodes[:3]:
        equations = equations_of(node.expansion(found.reduced.catalog)).strip()
        lines += [f"The definition of `{node.op.name}` says, for the sizes of this call:",
                  "", "```", equations, "```", ""]  # fmt: skip
    if v.stage == "backward":
        for node in _graph(found).nodes:
            if isinstance(node, Pullback) and v.name in node.outputs and node.forward is not None:
                lines += [*_backward(node, node.forward), ""]
    lines += _element(found)
    return lines


def _required(node: Node, message: str) -> list[str]:
    """The requirements of a definition, of which a call breaks one."""
    kept = [s for s in node.op.body if isinstance(s, ast.Require)]
    signature = print_file(ast.File((replace(node.op, body=tuple(kept), doc=""),), 1))
    text = signature.partition("\n\n")[2].strip()
    return [
        f"The call is invalid: {message}. The definition of `{node.op.name}` requires:",
        "", "```", text, "```", "",
        "It should be refused with a message, as it has no value.",
    ]  # fmt: skip


def _backward(node: Pullback, call: Node) -> list[str]:
    """What follows for the gradient of a call."""
    results = call.results()
    flowing = [n for n in node.equations.inputs if n.removeprefix(PREFIX) in results]
    names = ", ".join(f"`{name}`" for name in flowing)
    said = f"From these follows its gradient, {names} being what flows back to its results:"
    return [said, "", "```", equations_of(node.equations).strip(), "```"]


def _graph(found: Found) -> Graph:
    """The program, with the calls of its gradient where that is the matter."""
    case = found.reduced
    if found.verdict.stage != "backward":
        return case.graph
    return gradient_graph(prepare(case.graph, case.catalog)).graph


def _radius(found: Found) -> str:
    radius = found.verdict.radius
    if not radius:
        return "No rounding is involved: the value is exact."
    name = {"bf16": "bfloat16", "f16": "float16", "f32": "float32", "f64": "float64"}
    info = found.reduced.graph.values.get(found.verdict.name)
    kind = name.get(info.dtype, "this type") if info is not None else "this type"
    return (
        f"No order of evaluation in {kind}, with or without fused multiply-add, is further from "
        f"it than `{radius:.3g}`."
    )


def _element(found: Found) -> list[str]:
    """The arithmetic of the element that is furthest off."""
    case, v, graph = found.reduced, found.verdict, _graph(found)
    if v.index is None:
        return []
    value = graph.outputs.get(v.name)
    node = next((n for n in graph.nodes if value in n.outputs), None)
    if node is None or value is None:
        return []
    try:
        values = run(graph, case.values, case.catalog)
        expansion = node.expansion(case.catalog)
        fed = {formal: load(graph.values[name], values[name])
               for formal, name in node.feeds().items()}  # fmt: skip
        tensors = {**fed, **reference.evaluate(expansion, fed)}
    except InvalidInput:
        return []
    formal = next(f for f, name in node.results().items() if name == value)
    lines = explain(expansion, tensors, formal, v.index)
    return ["For this element:", "", "```", *lines, "```"] if lines else []


def _actual(found: Found) -> list[str]:
    v = found.verdict
    if v.got is not None:
        lines = [f"`{_number(v.got)}`" + ("" if v.max_error is None else f", off by "
                 f"`{v.max_error:.3g}`.")]  # fmt: skip
        for name, array in found.got.items():
            if name in found.expected and array.size <= 16:
                wanted = np.asarray(found.expected[name].value).tolist()
                lines += [
                    "",
                    f"- `{name}` expected `{wanted}`",
                    f"- `{name}` got `{array.tolist()}`",
                ]
        return lines
    lines = [f"{_LOST.get(v.verdict, v.verdict)}: {' '.join(v.message.split())[:600]}"]
    small = {name: array for name, array in found.got.items() if array.size <= 16}
    return lines + [f"\n- `{name}` got `{array.tolist()}`" for name, array in small.items()]


def _others(found: Found) -> list[str]:
    lines = [f"- {found.target} {found.version}: {found.verdict.verdict}"]
    for target, verdict in found.others.items():
        says = {"agrees": "agrees with the definition", "rounding": "agrees with the definition",
                "unstable": "no verdict", "unsupported": "cannot run the program"}  # fmt: skip
        version = found.versions.get(target, "")
        lines.append(f"- {target} {version}: {says.get(verdict, verdict)}".replace(" :", ":"))
    lines += [f"- {platform.system()} {platform.machine()}, Python {platform.python_version()}", ""]
    return lines
