"""What ONNX's operators are in irlang: one table, from one module a family.

To add an operator, put a row into the module of its family:

    ROWS: dict[str, Row] = {
        "Add": calls("add"),            # the same inputs in the same order, no attributes
        "Softmax": _softmax,            # anything else: a function of the node
    }

A row takes a `Node` (`irlang.importers.onnx_node`) and gives its result, or a list of its results,
as `Value`s:

    def _leaky(n: Node) -> Value:
        return n.call("leaky_relu", n.input(0), alpha=n.real("alpha", 0.01))

- `n.input(i)`, `n.optional(i)`, `n.x`: the inputs, with `.shape`, `.dtype`, `.rank`. Sizes may be
  open: compute with them, and do not compare them where you need not.
- `n.int`, `n.ints`, `n.real`, `n.flag`, `n.word`, …: attributes with ONNX's defaults. An attribute
  that no row asks for is refused; `n.ignore` names those that do not matter.
- `n.known_ints(i)`, `n.known_number(i)`, `n.known(i)`: the values of an input where the definition
  has an attribute. They are folded if they can be; if not, the node is refused with the reason.
- `n.version`: of the operator set, where versions differ.
- `n.step("scaled", "multiply", x, 0.5)`: a call on the way, named after the result;
  `n.call(op, …)`, `n.calls(2, op, …)`: the call that gives the result, or results. Inputs by name:
  `by_name={"mask": m}`. `n.const(array)`: a constant. An input may be the result as it is.
- `raise Unsupported("why")` for what cannot be said; `raise ByFunction` leaves the node to the
  function that ONNX gives for its operator.

An operator without a row whose meaning ONNX gives as a function is written out as that function.
What is left out for good stands in `irlang.importers.onnx_left_out`, with the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from irlang.importers import (
    onnx_attention,
    onnx_elementwise,
    onnx_image,
    onnx_indexing,
    onnx_nn,
    onnx_norm,
    onnx_places,
    onnx_random,
    onnx_recurrent,
    onnx_reduce,
    onnx_shape,
    onnx_signal,
    onnx_training,
)
from irlang.importers.onnx_node import Node, Value

Row = Callable[[Node], Value | Sequence[Value | None]]

ROWS: dict[str, Row] = {
    **onnx_elementwise.ROWS,
    **onnx_shape.ROWS,
    **onnx_indexing.ROWS,
    **onnx_reduce.ROWS,
    **onnx_nn.ROWS,
    **onnx_norm.ROWS,
    **onnx_places.ROWS,
    **onnx_random.ROWS,
    **onnx_image.ROWS,
    **onnx_signal.ROWS,
    **onnx_attention.ROWS,
    **onnx_recurrent.ROWS,
    **onnx_training.ROWS,
}
