"""One call of a definition, computed exactly, with the radius that any float64 evaluation may take.

What tests of definitions compare: `exact` (the definition in 30 digits), `rounding` (its radius at
float64) and `reference` (the oracle in float64), and whatever computed the same independently.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from irlang.catalog import builtin
from irlang.dtypes import DTYPES
from irlang.equations import TensorInfo
from irlang.expand import expand
from irlang.instance import instantiate
from irlang.interp import exact, reference, rounding
from irlang.interp.balls import Ball
from irlang.interp.plain import load

Array = np.ndarray[Any, Any]
_NAMES = {dtype.numpy: name for name, dtype in DTYPES.items()}


@dataclass(frozen=True, slots=True)
class Result:
    """A result of a call: true value, radius (infinite where no verdict is given)."""

    value: Array
    radius: Array

    def check(self, other: Any) -> None:
        """Another computation of the same in float64 is inside the radius."""
        other = np.asarray(other)
        assert other.shape == self.value.shape
        kinds = {kind: "iu" if kind in "iu" else kind for kind in "iufb"}
        assert other.dtype.kind in kinds[self.value.dtype.kind]
        assert other.dtype == np.float64 or other.dtype.kind != "f"
        decided = np.isfinite(self.radius)
        finite = decided & np.isfinite(self.value)
        np.testing.assert_array_equal(other[decided & ~finite], self.value[decided & ~finite])
        gap = np.abs(other[finite] - self.value[finite])
        worst = (gap - self.radius[finite]).max(initial=-np.inf)
        assert worst <= 0, f"off by {gap.max()}, allowed {self.radius[finite].max()}"


def call(name: str, inputs: Mapping[str, Array], **attrs: Any) -> dict[str, Result]:
    """Results by name. Fails where the oracle is off, or where its radius says next to nothing."""
    definitions = builtin()
    op = definitions.op(name)
    assert op is not None
    infos = {key: TensorInfo(value.shape, _NAMES[value.dtype]) for key, value in inputs.items()}
    instance = instantiate(op, infos, attrs)
    assert not instance.faults, instance.faults
    expansion = expand(instance, definitions)
    true = exact.evaluate(expansion, inputs, digits=30)
    loaded = {key: Ball(load(infos[key], value)) for key, value in inputs.items()}
    balls = rounding.evaluate(expansion, loaded, "f64")
    computed = reference.evaluate(expansion, inputs)
    found = {}
    for output in expansion.outputs:
        value = true[output].numpy()
        ball = balls[output]
        # the true value is known to the nearest float64 only
        sizes = np.abs(np.where(np.isfinite(value), value, 0.0))
        radius = np.broadcast_to(ball.bound, value.shape) + np.spacing(sizes)
        small = ~np.isfinite(radius) | (radius < 1e-9 * (1 + sizes.max(initial=0)))
        assert small.all(), f"a radius of {radius.max()} tells nothing"
        result = Result(value, radius)
        result.check(computed[output])
        found[output] = result
    return found


def refused(name: str, shapes: Mapping[str, tuple[int, ...]], **attrs: Any) -> list[str]:
    """The codes of what is wrong with a call, if anything is."""
    op = builtin().op(name)
    assert op is not None
    infos = {key: TensorInfo(shape, "f64") for key, shape in shapes.items()}
    return [fault.code for fault in instantiate(op, infos, attrs).faults]
