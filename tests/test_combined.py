"""Models by hand that combine operators as no other test does: values by an independent program.

Every model is checked, printed and read again, computed, compared with what NumPy or PyTorch gives
in double precision, and compared with every framework, gradients too where there is a loss.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812

import irlang
from irlang.diff.runner import Case, Session
from irlang.diff.verdict import FINDINGS
from irlang.interp.program import balls, precision
from irlang.interp.values import initial_values, inputs
from irlang.parser import parse
from irlang.parser.printer import print_file

Array = np.ndarray[Any, Any]
Values = Mapping[str, Any]
TARGETS = ("torch", "tf", "onnxruntime")


def real(array: Array) -> torch.Tensor:
    """A tensor of double precision."""
    return torch.tensor(np.asarray(array, np.float64))


def steps(make: Callable[[Any], Any], v: Values) -> Array:
    """Three steps of an optimizer with the same gradient."""
    parameter = torch.nn.Parameter(real(v["x"]))
    optimizer = make([parameter])
    for _ in range(3):
        parameter.grad = real(v["g"])
        optimizer.step()
    return np.asarray(parameter.detach().numpy())


def repeated(name: str, states: int, attrs: str, counts: bool = True) -> str:
    """Three steps of an optimizer as a model."""
    names = [f"s{i}" for i in range(states)]
    starts = "\n".join(f"  {s} = multiply(x, 0)" for s in names)
    step = "step = i + 1, " if counts else ""
    call = f"{', '.join(['y', *names])} = {name}({', '.join(['y', 'g', *names])}; {step}{attrs})"
    head = "model m(x: f32[5], g: f32[5]) -> y: f32[5] {\n  y = identity(x)\n"
    return f"{head}{starts}\n  for i < 3 {{\n    {call}\n  }}\n}}"


def stacked(v: Values) -> Any:
    """Weighted and smoothed losses of classes that lie on the second axis."""
    x, t, w = real(v["x"]), torch.tensor(v["t"]), real(v["w"])
    a = F.cross_entropy(x, t, w, ignore_index=1, label_smoothing=0.1)
    return {"a": a, "b": F.cross_entropy(x, t, w, reduction="none")}


def sampled(v: Values) -> Any:
    """A cubic resize, then an affine grid."""
    wide = F.interpolate(real(v["x"]), size=(6, 10), mode="bicubic", align_corners=True)
    grid = F.affine_grid(real(v["th"]), [1, 2, 3, 6], align_corners=True)
    return F.grid_sample(wide, grid, padding_mode="reflection", align_corners=True)


CASES: dict[str, tuple[str, Callable[[Values], Any] | None]] = {
    "a diagonal contracted": (
        """model m(a: f32[3, 3], b: f32[3, 4]) -> y: f32[4] {
  y = einsum(a, b; labels = [0, 0, 0, 1], output = [1])
}""",
        lambda v: np.einsum("ii,ij->j", v["a"], v["b"]),
    ),
    "a contraction of nothing": (
        """model m(a: f32[2, 0], b: f32[0, 3]) -> y: f32[2, 3], z: f32[2, 0], at: i64[2, 0] {
  y = einsum(a, b; labels = [0, 1, 1, 2])
  z, at = sort(a; descending = true)
}""",
        lambda _: {"y": np.zeros((2, 3)), "z": np.zeros((2, 0))},
    ),
    "sums of the largest unsigned numbers": (
        """model m(a: u64[6] in [0, 18446744073709551615], b: i8[6]) -> y: u64[6] {
  y = add(a, cast(cast(b; to = i64); to = u64))
}""",
        lambda v: v["a"] + v["b"].astype(np.uint64),
    ),
    "a loss that hangs on nothing": (
        """model m(x: f32[3, 4]) -> y: i64[3], loss: f32[] {
  y = argmax(x)
  loss = reduce_mean(cast(y; to = f32))
}""",
        lambda v: {"y": v["x"].argmax(-1), "loss": v["x"].argmax(-1).mean()},
    ),
    "no examples": (
        """model m(x: f32[0, 3, 8, 8]) -> y: f32[0, 10], loss: f32[] {
  param w: f32[4, 3, 3, 3]
  param d: f32[36, 10]
  y = softmax(dense(flatten(max_pool(relu(conv(x, w)); window = 2)), d))
  loss = reduce_sum(y)
}""",
        lambda _: {"y": np.zeros((0, 10)), "loss": 0.0},
    ),
    "sorted, the best of them, and there again": (
        """model m(x: f32[3, 7]) -> y: f32[3, 2], z: f32[3, 7], loss: f32[] {
  s, p = sort(x; axis = 1, descending = true)
  y, at = top_k(s; k = 2, largest = false)
  z = take_along_axis(x, p; axis = -1)
  loss = reduce_mean(multiply(y, y))
}""",
        lambda v: {"y": np.sort(v["x"], 1)[:, :2], "z": -np.sort(-v["x"], 1)},
    ),
    "resized, then sampled": (
        """model m(x: f32[1, 2, 4, 5], th: f32[1, 2, 3]) -> y: f32[1, 2, 3, 6], loss: f32[] {
  r = resize(x; scale = [1.5, 2], mode = cubic, coord = align_corners)
  g = affine_grid(th; size = [3, 6], align_corners = true)
  y = grid_sample(r, g; padding = reflection, align_corners = true)
  loss = reduce_mean(square(y))
}""",
        sampled,
    ),
    "losses of weighted classes": (
        """model m(x: f32[4, 3, 2], t: i64[4, 2] in [0, 2], w: f32[3] in [0.1, 1])
    -> a: f32[], b: f32[4, 2], loss: f32[] {
  a = cross_entropy(x, t, w; axis = 1, ignore_index = [1], label_smoothing = 0.1)
  b = nll(log_softmax(x; axis = 1), t, w; axis = 1, reduction = none)
  loss = add(a, reduce_mean(b))
}""",
        stacked,
    ),
    "unfolded and folded": (
        """model m(x: f32[1, 2, 5, 6]) -> y: f32[1, 2, 5, 6] {
  c = im2col(x; window = [3, 2], stride = 2, before = 1, after = 1)
  y = col2im(c; size = [5, 6], window = [3, 2], stride = [2, 2], before = [1, 1], after = [1, 1])
}""",
        lambda v: F.fold(
            F.unfold(real(v["x"]), (3, 2), padding=1, stride=2), (5, 6), (3, 2), padding=1, stride=2
        ),
    ),
    "pooled, and back to where it was": (
        """model m(x: f32[1, 1, 4, 4]) -> y: f32[1, 1, 4, 4], loss: f32[] {
  p, at = max_pool_with_argmax(x; window = 2)
  y = max_unpool(p, at; size = [4, 4])
  loss = reduce_sum(square(y))
}""",
        lambda v: F.max_unpool2d(*F.max_pool2d(real(v["x"]), 2, return_indices=True), 2),
    ),
    "strides larger than windows": (
        """model m(x: f32[1, 4, 9], w: f32[4, 2, 1], t: f32[4, 3, 2])
    -> y: f32[1, 4, 3], z: f32[1, 6, 37], loss: f32[] {
  y = conv(x, w; stride = 4, groups = 2)
  z = conv_transpose(x, t; stride = 4, groups = 2, output_padding = 3)
  loss = add(reduce_mean(square(y)), reduce_mean(square(z)))
}""",
        lambda v: {
            "y": F.conv1d(real(v["x"]), real(v["w"]), stride=4, groups=2),
            "z": F.conv_transpose1d(
                real(v["x"]), real(v["t"]), stride=4, groups=2, output_padding=3
            ),
        },
    ),
    "blocks in blocks, some of no rounds": (
        """block f(x: f32[]; k: int = 3) -> y: f32[] {
  y = identity(x)
  for i < k {
    y = add(multiply(y, 0.5), i)
  }
}
model m(x: f32[]) -> y: f32[], loss: f32[] {
  y = f(f(x); k = 0)
  loss = square(y)
}""",
        lambda v: {"y": ((v["x"] * 0.5) * 0.5 + 1) * 0.5 + 2},
    ),
    "adam": (
        repeated("adam", 2, "lr = 0.1, weight_decay = 0.01, decoupled = true"),
        lambda v: steps(lambda p: torch.optim.AdamW(p, lr=0.1, weight_decay=0.01), v),
    ),
    "adamax": (
        repeated("adamax", 2, "lr = 0.1"),
        lambda v: steps(lambda p: torch.optim.Adamax(p, lr=0.1), v),
    ),
    "adadelta": (
        repeated("adadelta", 2, "lr = 0.5", counts=False),
        lambda v: steps(lambda p: torch.optim.Adadelta(p, lr=0.5), v),
    ),
    "sgd": (
        repeated("sgd", 1, "lr = 0.1, momentum = 0.9, nesterov = true"),
        lambda v: steps(lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True), v),
    ),
}


@pytest.fixture(scope="module")
def session() -> Iterator[Session]:
    with Session(TARGETS) as started:
        yield started


@pytest.mark.parametrize("name", CASES)
def test_all_meanings_agree(name: str, session: Session) -> None:
    text, independent = CASES[name]
    printed = print_file(parse(text, ""))
    assert print_file(parse(printed, "")) == printed
    made = irlang.loads(printed)
    graph = made.graph
    values = made.values()
    if independent is not None:
        found = balls(graph, values, made.catalog, precision(graph))
        wanted = independent(values)
        wanted = wanted if isinstance(wanted, dict) else {next(iter(graph.outputs)): wanted}
        for output, right in wanted.items():
            ball, right = found[graph.outputs[output]], np.asarray(right)
            assert np.shape(ball.value) == right.shape
            if right.dtype.kind == "f":
                assert (np.abs(ball.value - right) <= ball.bound).all()
            else:
                assert np.array_equal(ball.value, right)
    case = Case(graph, inputs(graph, 0, None), initial_values(graph, 0), made.catalog)
    outcome = session.compare([case], grad=graph.loss is not None)[0]
    assert outcome.refusal is None
    judged = [verdict for verdicts in outcome.verdicts.values() for verdict in verdicts]
    assert {verdict.target for verdict in judged} == set(TARGETS)
    assert not [verdict for verdict in judged if verdict.verdict in FINDINGS]
