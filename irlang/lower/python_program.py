"""The layout of an emitted Python program: what stands around the model's function.

The text is deterministic. Everything that comes from the file is an identifier of `Names`, the
`repr` of a string, or escaped text in a docstring.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from irlang.dtypes import DTYPES
from irlang.equations import TensorInfo
from irlang.graph import Graph
from irlang.lower.emit import Body
from irlang.lower.names import docstring
from irlang.lower.python_builder import PythonBuilder
from irlang.lower.value import Value

# Names that a module has for itself; those inside its functions disturb nobody.
RESERVED = (
    "F", "np", "sys", "torch", "tf", "jax", "jnp", "Path", "INPUTS", "PARAMS", "OUTPUTS",
    "BFLOAT16", "run", "gradients", "main", "tensor", "array", "Model", "exported", "keras",
    "ops", "os", "applied", "is_real", "theano", "T", "K", "collections", "computed", "mx", "where",
    "watched", "tapped", "SHOWN", "TAPS", "fixed", "converted", "inferred", "batched",
    "beside", "rolled", "sample", "dual_level", "make_dual", "unpack_dual", "column", "columns",
)  # fmt: skip
_WIDTH = 100


@dataclass(frozen=True, slots=True)
class Slopes:
    """How somebody writes gradients of a loss line by line, with no function around them.

    tensor: a tensor `{tensor}` that is differentiated by. within: the head of a block that the
    operators stand in, and what is first in it. taken: the statement that gives the gradients
    `{slopes}` by `{wanted}`. slope: a gradient `{slope}` as a tensor. function: whether the
    operators stand in a function `{function}` of all `{arguments}`, which gives the loss and the
    `{results}`, and is differentiated by its arguments at `{places}`.
    """

    taken: str
    tensor: str = "{tensor}"
    within: str = ""
    slope: str = "{slope}"
    function: bool = False


@dataclass(frozen=True, slots=True)
class Layout:
    """The parts of a program that differ between frameworks.

    framework: its name for people. imports: lines. helpers: the functions `tensor(name, value)`
    and `array(name, value)`, and the same where bfloat16 occurs. run, gradients: these functions
    (watched: the second where results are differentiated by as well), in which `{function}` is
    the model's, or what `wrapper` makes of it, and `{places}` says what the results are called in
    there. watched_run: the first of a program that has the
    second of these, where values come about in another way once something is differentiated.

    A mode shows in what stands around the model's function: decorator is a line above it, finish
    gives its text its last form, wrapper is the text of another function, named `wrapped`, that
    calls it. fixed: `run` of a program whose parameters are constants of what is compiled, and not
    arguments of it. One that has no gradients has no text for them. slopes: how gradients are
    written without functions, where that can be done. loose: the layout of the mode where it is not
    told the sizes of inputs before it runs a program; such a one has no gradients. again: where
    gradients are taken by halves, of which the second is added to the first.
    """

    framework: str
    imports: str
    helpers: str
    bfloat16_helpers: str
    run: str
    gradients: str
    watched: str
    watched_run: str = ""
    decorator: str = ""
    finish: Callable[[str], str] = str
    wrapper: str = ""
    wrapped: str = ""
    fixed: str = ""
    slopes: Slopes | None = None
    loose: Layout | None = None
    again: Layout | None = None


def parameters(graph: Graph) -> list[str]:
    """The parameters that a program takes; numbers in calls are written where they stand."""
    return [name for name, param in graph.params.items() if not param.literal]


def begin(graph: Graph, builder: PythonBuilder) -> dict[str, Value]:
    """Values for inputs and parameters, literals among them."""
    values: dict[str, Value] = {}
    for name in [*graph.inputs, *parameters(graph)]:
        info = graph.values[name]
        values[name] = Value(builder.names.fresh(name), info.shape, info.dtype)
        if builder.strided:
            builder.laid |= builder.lay(values[name])
    for name, param in graph.params.items():
        if param.literal and param.initial is not None:
            number = param.initial.args[0]
            if param.info.kind == "real":
                row = DTYPES[param.info.dtype]
                # PyTorch computes with all digits of a number that stands beside half precision
                number = float(np.asarray(number, row.numpy) if row.bits < 32 else number)
            array = np.full(param.info.shape, number)
            values[name] = builder.constant(array, param.info.dtype)
    return values


def program(
    graph: Graph,
    builder: PythonBuilder,
    body: Body,
    layout: Layout,
    gradients: bool,
    watched: bool = False,
    fixed: bool = False,
) -> str:
    """The text of the module; with `gradients`, that function too, for which there is a loss.

    watched: whether that gives the gradients by the program's results as well. fixed: whether its
    parameters are constants.
    """
    function = builder.names.fresh(graph.name)
    given = [*graph.inputs, *parameters(graph)]
    types = {name: graph.values[name] for name in given}
    types.update({n: TensorInfo(a.shape, t) for n, (t, a) in builder.constants.items()})
    arguments = [*(body.values[name].text for name in given), *builder.constants]
    signature = dict(zip(arguments, types.values(), strict=True))
    returned = [builder.full(body.values[value]) for value in graph.outputs.values()]
    results = {name: graph.values[value] for name, value in graph.outputs.items()}
    if gradients and graph.loss is not None:
        returned.append(builder.full(body.values[graph.loss]))
    bfloat16 = [name for name, info in {**types, **results}.items() if info.dtype == "bf16"]
    run = (gradients and watched and layout.watched_run) or (layout.fixed if fixed else layout.run)
    parts = [
        _head(graph, layout),
        "\n".join(
            (
                _names("INPUTS", list(graph.inputs)),
                _names("PARAMS", [*parameters(graph), *builder.constants]),
                _names("OUTPUTS", list(results)),
                *([_names("BFLOAT16", bfloat16)] if bfloat16 else ()),
            )
        ),
        layout.decorator * (not fixed)
        + layout.finish(_function(graph, function, signature, builder.needed(returned), returned)),
        *([layout.wrapper.format(function=function)] if layout.wrapper else ()),
        layout.bfloat16_helpers if bfloat16 else layout.helpers,
        run.format(function=layout.wrapped or function),
    ]
    if gradients:
        text = (watched and layout.watched) or layout.gradients
        places = dict(zip(results, returned, strict=False))
        parts.append(text.format(function=layout.wrapped or function, places=places))
    return "\n\n\n".join([*(part.strip("\n") for part in parts), _MAIN.strip("\n")]) + "\n"


def _head(graph: Graph, layout: Layout) -> str:
    doc = docstring(f"{graph.name}: {graph.doc}" if graph.doc else graph.name)
    about = (
        f"For {layout.framework}. `run` takes and gives NumPy arrays by name (bfloat16 as its\n"
        "bits, in uint16). As a program it reads the parameters from the .npz file beside it\n"
        "and the inputs from the .npz file that is named, or .inputs.npz, and prints the outputs."
    )
    return f'"""{doc}\n\n{about}\n"""\n\n{layout.imports.strip()}'


def _names(constant: str, names: Sequence[str]) -> str:
    """A tuple of names, on one line where it fits."""
    items = [
        f'"{name}"' if name.isidentifier() and name.isascii() else repr(name) for name in names
    ]
    text = f"{constant} = ({', '.join(items)}{',' * (len(items) == 1)})"
    if len(text) <= _WIDTH:
        return text
    return "\n".join([f"{constant} = (", *(f"    {item}," for item in items), ")"])


def _function(
    graph: Graph,
    name: str,
    arguments: dict[str, TensorInfo],
    lines: Sequence[str],
    returned: Sequence[str],
) -> str:
    head = f"def {name}({', '.join(arguments)}):"
    if len(head) > _WIDTH:
        head = "\n".join([f"def {name}(", *(f"    {argument}," for argument in arguments), "):"])
    doc = [f"    {argument}: {info}" for argument, info in arguments.items()]
    results = [f"    {n}: {graph.values[v]}" for n, v in graph.outputs.items()]
    text = [head, '    """Takes', "", *(f"    {line}" for line in doc), "", "    and gives", ""]
    text += [f"    {docstring(line)}" for line in results]
    text += ['    """', *(f"    {line}" for line in lines)]
    return "\n".join([*text, f"    return {', '.join(returned)}" + "," * (len(returned) == 1)])


_MAIN = """
def main():
    with np.load(Path(__file__).with_suffix(".npz"), allow_pickle=False) as file:
        params = {name: file[name] for name in PARAMS}
    beside = Path(__file__).with_suffix(".inputs.npz")
    with np.load(sys.argv[1] if len(sys.argv) > 1 else beside, allow_pickle=False) as file:
        inputs = {name: file[name] for name in INPUTS}
    for name, value in run(inputs, params).items():
        print(name, value.dtype, value.shape)
        print(value)


if __name__ == "__main__":
    main()
"""
