"""How TensorFlow spells the functions of elements that NumPy and SciPy have."""

from __future__ import annotations

from irlang.lower.call import Native
from irlang.lower.spelling import plain

_PLAIN = "atan2 divide_no_nan multiply_no_nan xlogy xlog1py"

NUMERIC: dict[str, Native] = {name: plain(f"tf.math.{name}") for name in _PLAIN.split()}
