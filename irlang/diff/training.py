"""Steps of an optimizer on a target, each judged by what the target itself had before it.

An optimizer is a definition that takes a parameter and its gradient and gives the parameter after
the step; what it keeps from step to step is an input `NAME` and a result `new_NAME`. A step of all
parameters is a model of calls of it, so that a target takes it as it takes any model: with its own
optimizer where its table has one, else by the definition. The parameters, gradients and kept
values that go into a step are those that the target itself gave; so radii do not grow with the
number of steps.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

import numpy as np

from irlang import ast
from irlang.catalog import Catalog
from irlang.diagnostics import InvalidInput, fail
from irlang.diff.calls import Array, Case
from irlang.diff.outcome import Outcome
from irlang.diff.runner import Session
from irlang.diff.verdict import Verdict
from irlang.equations import TensorInfo
from irlang.graph import Graph
from irlang.instance import instantiate
from irlang.interp.shape import check
from irlang.interp.values import initial_values
from irlang.parser import parse

_WRITTEN = re.compile(r"\s*([A-Za-z_]\w*)\s*(?:\((.*)\))?\s*", re.DOTALL)
_NEW = "new_"
_GRADIENT = "gradient"  # the second input of an optimizer
_ANY = TensorInfo((2, 3), "f32")  # a parameter to try settings on
_COUNT = "step"  # the input that is given the number of the step, from 1


@dataclass(frozen=True, slots=True)
class Optimizer:
    """A definition that takes steps, and its settings as they are written after `;`."""

    op: ast.Op
    settings: str

    @property
    def kept(self) -> tuple[str, ...]:
        """What is kept from step to step."""
        return tuple(out.name.removeprefix(_NEW) for out in self.op.outputs[1:])

    def model(self, infos: list[TensorInfo], step: int) -> str:
        """The text of one step of parameters of these types.

        The parameters are `p0`, `p1`, …, their gradients `g0`, …, what is kept `p0_NAME`; results
        are `p0_y` and `p0_new_NAME`. Before the first step nothing has been kept.
        """
        inputs, results, lines = [], [], []
        first, *others = (out.name for out in self.op.outputs)
        counts = any(item.name == _COUNT for item in self.op.inputs)
        settings = [f"{_COUNT} = {step}"] * counts + [self.settings] * bool(self.settings)
        for number, info in enumerate(infos):
            given = {f"p{number}": info, f"g{number}": info}
            types = dict(instantiate(self.op, _operands(self.op, info), {}).outputs or ())
            named = {f"p{number}_{name}": types[name] for name in (first, *others)}
            kept = []
            if step > 1:
                given.update((f"p{number}_{name}", types[f"{_NEW}{name}"]) for name in self.kept)
                kept = [f"{name} = p{number}_{name}" for name in self.kept]
            inputs += [f"{name}: {kind}" for name, kind in given.items()]
            results += [f"{name}: {kind}" for name, kind in named.items()]
            after = ", ".join([*kept, *settings])
            call = f"{self.op.name}(p{number}, g{number}{'; ' * bool(after)}{after})"
            lines.append(f"  {', '.join(named)} = {call}\n")
        body = "".join(lines)
        return f"nnir 1\nmodel step({', '.join(inputs)}) -> {', '.join(results)} {{\n{body}}}\n"


def _operands(op: ast.Op, info: TensorInfo) -> dict[str, TensorInfo]:
    return {item.name: info for item in op.inputs[:2]}


def optimizer(text: str, catalog: Catalog) -> Optimizer:
    """An optimizer as it is written: its name, and in parentheses its attributes and rates.

    Raises `usage.optimizer` where it is none.
    """
    found = _WRITTEN.fullmatch(text)
    op = catalog.op(found[1]) if found else None
    if found is None or op is None:
        help_ = "as in --optimizer 'NAME(lr = 0.1)'; `irlang ops` lists the definitions"
        raise fail("usage.optimizer", f"`{text}` is no definition", help=help_)
    inputs = {item.name for item in op.inputs}
    needed = [item.name for item in op.inputs if item.default is None]
    kept = [out.name for out in op.outputs[1:]]
    steps = len(needed) == 2 and needed == [item.name for item in op.inputs[:2]]
    steps = steps and needed[1] == _GRADIENT
    given = instantiate(op, _operands(op, _ANY), {}).outputs if steps else None
    steps = given is not None and given[0][1] == _ANY
    if not steps or any(n.removeprefix(_NEW) not in inputs or not n.startswith(_NEW) for n in kept):
        raise fail(
            "usage.optimizer",
            f"`{op.name}` takes no steps of a parameter",
            help="a step takes a parameter and its `gradient` and gives the parameter after it;"
            " what it keeps is an input NAME and a result new_NAME",
        )
    made = Optimizer(op, (found[2] or "").strip())
    step_graph(made, [_ANY], 1, catalog)
    return made


def step_graph(made: Optimizer, infos: list[TensorInfo], step: int, catalog: Catalog) -> Graph:
    """One step as a checked model. Raises `InvalidInput` for settings that do not fit."""
    checked = check(parse(made.model(infos, step), "--optimizer"), catalog)
    if checked.diagnostics:
        raise InvalidInput(*checked.diagnostics)
    return checked.graphs[0]


def train(
    session: Session, case: Case, target: str, made: Optimizer, steps: int, outcome: Outcome
) -> list[Verdict]:
    """Verdicts on `steps` steps: what is given after each, and the values and gradients before it.

    outcome: of the case with its gradients, where the first step begins. Ends early where the
    target gives no gradients.
    """
    alone = session.only(target)
    found: list[Verdict] = []
    kept: dict[str, dict[str, Array]] = {}
    for number in range(1, steps + 1):
        if number > 1:
            outcome = alone.compare([case], grad=True)[0]
            found += [replace(v, name=f"{v.name} at {number}") for v in outcome.verdicts[target]]
        result = outcome.results.get(target)
        names = [
            name
            for name, param in case.graph.params.items()
            if not param.literal and result is not None and name in result.gradients
        ]
        if result is None or not names:
            said = "there are no gradients to take a step by"
            found.append(
                Verdict(f"after {number}", target, "unsupported", message=said, stage="step")
            )
            break
        infos = [case.graph.values[name] for name in names]
        graph = step_graph(made, infos, number, case.catalog)
        given: dict[str, Array] = {}
        for i, name in enumerate(names):
            given[f"p{i}"], given[f"g{i}"] = case.params[name], result.gradients[name]
            given.update((f"p{i}_{own}", array) for own, array in kept.get(name, {}).items())
        step = Case(
            graph,
            {name: given[name] for name in graph.inputs},
            initial_values(graph, 0),
            case.catalog,
        )
        taken = alone.compare([step])[0]
        called = {f"p{i}_{made.op.outputs[0].name}": name for i, name in enumerate(names)}
        called.update(
            (f"p{i}_{_NEW}{own}", f"{name}.{own}")
            for i, name in enumerate(names) for own in made.kept
        )  # fmt: skip
        found += [
            replace(v, name=f"{called[v.name]} after {number}", stage="step")
            for v in taken.verdicts[target]
        ]
        got = taken.results.get(target)
        if got is None or got.status != "ok":
            break
        arrays = {called[name]: np.asarray(array) for name, array in got.outputs.items()}
        kept = {name: {own: arrays[f"{name}.{own}"] for own in made.kept} for name in names}
        case = replace(case, params={**case.params, **{n: arrays[n] for n in names}}, balls=None)
    return found
