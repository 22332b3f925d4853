"""PyTorch's further words that write where something is: methods that change a tensor, functions
that are told where their result goes (`out=`), and parts of a tensor that are assigned.

The tensor that is changed is a copy, so that the program means what it meant; what compiles it has
to find that out, and a kernel writes to strides that it has not chosen.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from irlang.lower.call import Call, Native
from irlang.lower.spelling import exchanged
from irlang.lower.torch_assigned import ASSIGNED, masked, room, scattered, valid
from irlang.lower.torch_builder import TorchBuilder
from irlang.lower.value import Value

Torch = Call[TorchBuilder]
_HEAD = re.compile(r"([A-Za-z]+(?:\.\w+)*)\.(\w+)\(")


def _is_call(text: str) -> bool:
    """Whether a text is one call of a function, and nothing around it."""
    head = _HEAD.match(text)
    if head is None:
        return False
    depth = 1
    for place in range(head.end(), len(text)):
        depth += {"(": 1, ")": -1}.get(text[place], 0)
        if not depth:
            return place == len(text) - 1
    return False


def _parts(call: Torch, text: str) -> tuple[str, Value, str] | None:
    """The function that a text calls, its first operand, which is one of the call's, and what
    stands behind that; None where it is no such call.
    """
    head = _HEAD.match(text)
    if head is None or not _is_call(text):
        return None
    given = text[head.end() :]
    for value in map(call.build.solid, call.values.values()):
        rest = given.removeprefix(value.text)
        if rest != given and rest[0] in ",)":
            return head[0][:-1], value, rest.removeprefix(", ").removeprefix(")")
    return None


def _single(row: Native, call: Torch) -> Value | None:
    """The result of a row that has one."""
    found = row.rule(call)
    if isinstance(found, Value):
        return found
    return found[0] if found is not None and len(found) == 1 else None


# ---- methods that change a tensor

_ANSWERS = {"eq", "ne", "lt", "le", "gt", "ge", "logical_and", "logical_or", "logical_xor"}
_VIEWS = {"squeeze", "unsqueeze", "swapaxes", "transpose"}  # which change a shape alone


def _changed(row: Native) -> Native:
    """The method that is named as a function is, with an underscore. What answers gives 0 and 1
    in the type of the tensor.
    """

    def rule(call: Torch) -> Value | None:
        found = _single(row, call)
        told = None if found is None else _parts(call, found.text)
        if found is None or told is None:
            return None
        function, x, rest = told
        name = function.rpartition(".")[2]
        answers = name in _ANSWERS or name == "logical_not"
        if x.shape != found.shape and name not in _VIEWS:
            return None
        if x.dtype != found.dtype and not answers:
            return None
        text = f"{call.build.inner(x)}.clone().{name}_({rest or ')'}"
        return call.value(f"{text}.bool()" if answers and x.dtype != "bool" else text)

    return Native("Tensor methods that change it", rule, constant=row.constant)


def _activated(row: Native) -> Native:
    """A function that may be told to change what it is given."""

    def rule(call: Torch) -> Value | None:
        found = _single(row, call)
        told = None if found is None else _parts(call, found.text)
        if told is None or (call.build.sloped and call.get("alpha", 0) < 0):
            return None  # of a slope below 0 it is documented not to be differentiated in place
        function, x, rest = told
        given = f", {rest[:-1]}" if rest else ""
        return call.value(f"{function}({call.build.inner(x)}.clone(){given}, inplace=True)")

    return Native(f"{row.spelling} with inplace", rule)


def _arithmetic(name: str) -> Native:
    """One operand after the other, of which numbers stay what they are."""

    def rule(call: Torch) -> Value | None:
        first, *others = call.values.values()
        x = call.build.solid(first)
        if x.shape != call.out.shape or not others:
            return None
        text = f"{call.build.inner(x)}.clone()"
        for other in others:
            text = f"{text}.{name}_({other.text})"
        return call.value(text)

    return Native(f"Tensor.{name}_", rule)


_METHODS = (
    "negate abs sign square reciprocal floor ceil round trunc sqrt rsqrt exp expm1 log log1p sin "
    "cos tan asin acos atan sinh cosh tanh asinh acosh atanh erf sigmoid equal not_equal less "
    "less_equal greater greater_equal logical_and logical_or logical_xor logical_not lgamma "
    "digamma erfc erfinv floor_divide divide modulo clip cumsum cumprod squeeze expand_dims "
    "scatter_elements scatter_slices scatter_nd bit_and bit_or bit_xor bit_not bit_shift power "
    "baddbmm gemm atan2 hypot copysign ldexp xlogy lerp frac exp2 log2 log10 sinc deg2rad rad2deg "
    "gcd lcm round_to heaviside addcmul addcdiv nan_to_num logit multigammaln trilu"
)
_INPLACE = (
    "relu elu selu celu leaky_relu silu mish hard_sigmoid hard_swish hard_tanh thresholded_relu"
)
_ARITHMETIC = {
    "add": "add", "subtract": "sub", "multiply": "mul", "add_n": "add", "multiply_n": "mul",
}  # fmt: skip


# ---- where a result goes

_INTO = (
    "negate abs sign square reciprocal floor ceil round trunc sqrt rsqrt exp expm1 log log1p sin "
    "cos tan asin acos atan sinh cosh tanh asinh acosh atanh erf sigmoid equal not_equal less "
    "less_equal greater greater_equal logical_and logical_or logical_xor logical_not lgamma "
    "digamma erfc erfinv ndtr maximum minimum where floor_divide divide modulo clip reduce_sum "
    "reduce_mean reduce_max reduce_min reduce_prod argmax argmin reduce_all reduce_any "
    "reduce_variance reduce_std reduce_logsumexp reduce_l1 reduce_l2 reduce_lp reduce_nansum "
    "cumsum cumprod logcumsumexp gather take_along_axis concat stack bit_and bit_or bit_xor "
    "bit_not bit_shift power kron cross inner matrix_norm cholesky inverse solve determinant "
    "matrix_power triangular_solve baddbmm gemm matmul outer atan2 hypot fmax fmin copysign ldexp "
    "xlogy xlog1py lerp signbit frac exp2 log2 log10 sinc entr deg2rad rad2deg gcd lcm round_to "
    "gammainc gammaincc zeta heaviside addcmul addcdiv nan_to_num logit multigammaln polygamma "
    "erfcx ndtri log_ndtr searchsorted bucketize differences bessel_i trilu softmax log_softmax "
    "scatter_elements scatter_slices eye full arange linspace"
)


def _into(row: Native) -> Native:
    """A function that is told where its result goes, which autograd does not follow."""

    def rule(call: Torch) -> Value | None:
        found = None if call.build.sloped else _single(row, call)
        if found is None or found.dtype != call.out.dtype or not _is_call(found.text):
            return None
        begun = re.sub(r", dtype=torch\.\w+$", "", found.text[:-1])  # which is that of the room
        if call.get("axes", None) is not None and "dim=" not in begun:
            axes = call.axes_said("axes", call.input("x").rank)  # which are to be said beside it
            if len(axes) > 1 and "torch.prod" in begun:
                return None
            begun += f", dim={axes[0] if len(axes) == 1 else axes}"
        return call.value(f"{begun}, out={room(call)})")

    return Native("functions with out=", rule)


_PAIRS = "sort kth_value cummax cummin log_determinant"


def _into_two(row: Native) -> Native:
    """The same of two results."""

    def rule(call: Torch) -> list[Value] | None:
        found = None if call.build.sloped else row.rule(call)
        if not isinstance(found, list) or len(found) != 2:
            return None
        _, _, text = call.build.lines.pop().partition(" = ")
        for number, value in enumerate(found):
            call.build.lines.append(f"{value.text} = {room(call, number)}")
        names = ", ".join(value.text for value in found)
        call.build.lines.append(f"{text[:-1]}, out=({names}))")
        return found

    return Native("functions with out=", rule)


def words(rows: Mapping[str, Native]) -> dict[str, tuple[Native, ...]]:
    """The words that write where something is, made of the usual rows."""
    found: dict[str, list[Native]] = {}

    def more(name: str, word: Native) -> None:
        found.setdefault(name, []).append(replace(word, since=(2,)))

    for name in _METHODS.split():
        more(name, _changed(rows[name]))
    for name, method in _ARITHMETIC.items():
        more(name, _arithmetic(method))
    for name in _INPLACE.split():
        more(name, _activated(rows[name]))
    more("transpose", _changed(exchanged("torch.swapaxes")))
    more("where", Native("Tensor.masked_fill_", masked))
    more("where", Native("Tensor.masked_scatter_", scattered, eager=True))
    for name, word in ASSIGNED.items():
        more(name, replace(word, rule=valid(word.rule)))
    for name in _INTO.split():
        more(name, _into(rows[name]))
    for name in _PAIRS.split():
        more(name, _into_two(rows[name]))
    return {name: tuple(given) for name, given in found.items()}
