"""How JAX spells indexing, scattering and changes of shape."""

from __future__ import annotations

from itertools import accumulate

from irlang.lower.call import Call, Native
from irlang.lower.jax_builder import JaxBuilder
from irlang.lower.jax_ops import whole
from irlang.lower.legalise import filling, replaced, spatial
from irlang.lower.spelling import invoke, named, plain, reshaped
from irlang.lower.subscript import subscript
from irlang.lower.value import Value

Jax = Call[JaxBuilder]
_AT = {"none": "set", "add": "add", "mul": "multiply", "max": "max", "min": "min"}


# ---- indexing


def _embedding(call: Jax) -> Value:
    return call.value(invoke("jnp.take", call.input("table"), call.input("ids"), axis=0))


def _gather(call: Jax) -> Value:
    """Negative places count from the end, as in NumPy."""
    x = call.input("x")
    return call.value(invoke("jnp.take", x, call.input("ids"), axis=call.axis_said("axis", x.rank)))


def _take_along(call: Jax) -> Value:
    x = call.input("x")
    return call.value(
        invoke("jnp.take_along_axis", x, call.input("ids"), axis=call.axis_said("axis", x.rank))
    )


def _last(ids: Value, build: JaxBuilder) -> str:
    """The columns of a list of places, as a subscript."""
    text = build.let(ids, "ids").text
    return ", ".join(f"{text}[..., {i}]" for i in range(ids.shape[-1]))


def _gather_nd(call: Jax) -> Value | None:
    ids = call.input("ids")
    if call["batch_dims"] or not ids.rank or not ids.shape[-1]:
        return None
    return call.value(f"{call.build.inner(call.input('x'))}[{_last(ids, call.build)}]")


def _one_hot(call: Jax) -> Value | None:
    ids = call.input("ids")
    if call["negative"] != "off" or (float(call["on"]), float(call["off"])) != (1.0, 0.0):
        return None
    axis, dtype = call.axis_said("axis", ids.rank + 1), call.build.dtype(call.out.dtype)
    return call.value(invoke("jax.nn.one_hot", ids, call["depth"], dtype=dtype, axis=axis))


# ---- scattering


def _scatter_slices(call: Jax) -> Value | None:
    x, reduction = call.input("x"), call["reduction"]
    if reduction != "none" and x.dtype == "bool":
        return None
    axis = call.axis("axis", x.rank)
    place = f"{':, ' * axis}{call.input('ids').text}"
    return _updated(call, place)


def _scatter_nd(call: Jax) -> Value | None:
    ids = call.input("ids")
    if not ids.rank or not ids.shape[-1]:
        return None
    return _updated(call, _last(ids, call.build))


def _updated(call: Jax, place: str) -> Value | None:
    """`x.at[place].add(updates)`; places count from the end where they are negative."""
    x, reduction = call.input("x"), call["reduction"]
    if reduction != "none" and x.dtype == "bool":
        return None
    updates = call.input("updates").text
    return call.value(f"{call.build.inner(x)}.at[{place}].{_AT[reduction]}({updates})")


def _segment_reduce(call: Jax) -> Value | None:
    kind = call["reduction"]
    if kind == "mean" or (kind in ("max", "min") and whole(call.out)):
        return None  # JAX has no mean; of nothing the extreme is another integer
    values = call.input("x"), call.input("ids")
    text = invoke(f"jax.ops.segment_{kind}", *values, num_segments=call["segments"])
    return call.value(text)


def _slice_update(call: Jax) -> Value | None:
    """Of neighbours; an update that reaches beyond the end is documented to be moved back."""
    begin, given = replaced(call), (call.input("x"), call.input("update"))
    if begin is None:
        return None
    return call.value(invoke("jax.lax.dynamic_update_slice", *given, begin))


# ---- shapes


def _flatten(call: Jax) -> Value:
    return call.value(invoke("jnp.reshape", call.input("x"), call.out.shape))


def _squeeze(call: Jax) -> Value | None:
    x = call.input("x")
    axes = call.axes_said("axes", x.rank)
    given = [axes] if call.says("axes") else []
    return call.value(invoke("jnp.squeeze", x, *given)) if axes else None


def _expand_dims(call: Jax) -> Value | None:
    axes = call["axes"]
    return call.value(invoke("jnp.expand_dims", call.input("x"), tuple(axes))) if axes else None


def _transpose(call: Jax) -> Value:
    order = [tuple(call["order"])] if call.says("perm") else []
    return call.value(invoke("jnp.transpose", call.input("x"), *order))


def _joined(function: str, rank: int) -> Native:
    def rule(call: Jax) -> Value:
        values = call.family("xs")
        axis = call.axis_said("axis", values[0].rank + rank)
        listed = ", ".join(map(call.build.full, values))
        return call.value(f"{function}([{listed}], axis={axis})")

    return Native(function, rule)


def _split(call: Jax) -> list[Value]:
    x = call.input("x")
    axis = call.axis_said("axis", x.rank)
    *ends, _ = accumulate(info.shape[axis] for info in call.outputs)
    return named(call, invoke("jnp.split", x, str(ends), axis=axis))


def _pad(call: Jax) -> Value | None:
    x, mode = call.input("x"), call["mode"]
    pairs = tuple(zip(call["before"], call["after"], strict=True))
    if any(amount < 0 for pair in pairs for amount in pair):
        return None
    fill = (filling(call) or None) if mode == "constant" else None
    kind = None if mode == "constant" else f'"{mode}"'
    return call.value(invoke("jnp.pad", x, pairs, mode=kind, constant_values=fill))


def _repeat(call: Jax) -> Value:
    x = call.input("x")
    return call.value(invoke("jnp.repeat", x, call["repeats"], axis=call.axis_said("axis", x.rank)))


def _repeat_each(call: Jax) -> Value:
    """How large the result is has to be known before numbers are."""
    x, numbers = call.input("x"), f"np.array({list(call['repeats'])}, np.int32)"
    return call.value(invoke("jnp.repeat", x, numbers, axis=call.axis_said("axis", x.rank)))


def _tile(call: Jax) -> Value:
    return call.value(invoke("jnp.tile", call.input("x"), tuple(call["repeats"])))


def _flip(call: Jax) -> Value:
    x = call.input("x")
    axes = [call.axes_said("axes", x.rank)] if call.says("axes") else []
    return call.value(invoke("jnp.flip", x, *axes))


def _roll(call: Jax) -> Value | None:
    x, axes = call.input("x"), call.axes_said("axes", call.input("x").rank)
    return call.value(invoke("jnp.roll", x, tuple(call["shift"]), axes)) if axes else None


def _broadcast(call: Jax) -> Value:
    return call.value(invoke("jnp.broadcast_to", call.input("x"), call.out.shape))


def _trilu(call: Jax) -> Value:
    function = "jnp.triu" if call["upper"] else "jnp.tril"
    return call.value(invoke(function, call.input("x"), call["k"]))


def _meshgrid(call: Jax) -> list[Value]:
    listed = ", ".join(call.build.full(value) for value in call.family("xs"))
    return named(call, invoke("jnp.meshgrid", listed, indexing=f'"{call["indexing"]}"'))


def _resize(call: Jax) -> Value | None:
    """Half a pixel lies around every element; cubic weights are those of Keys."""
    x, antialias = call.input("x"), call["antialias"]
    if (
        not spatial(call, x)
        or call["coord"] != "half_pixel"
        or call["exclude_outside"] != antialias
    ):
        return None
    method = call["mode"]
    if method == "nearest":
        if call["rounding"] != "round_prefer_ceil":
            return None
        antialias = False
    elif whole(x) or x.dtype == "bool":
        return None
    if method == "cubic" and (call["cubic_coeff"] != -0.5 or not antialias):
        return None
    shape = call.out.shape
    return call.value(invoke("jax.image.resize", x, shape, f'"{method}"', antialias=antialias))


# ---- diagonals


def _diagonal(call: Jax) -> Value:
    x = call.input("x")
    first, second = call.axes_said("axes", x.rank)
    options = {"offset": call["offset"] or None, "axis1": first, "axis2": second}
    return call.value(invoke("jnp.diagonal", x, **options))


def _trace(call: Jax) -> Value:
    x = call.input("x")
    first, second = call.axes_said("axes", x.rank)
    dtype = call.build.dtype(call.out.dtype) if whole(call.out) else None
    options = {"offset": call["offset"] or None, "axis1": first, "axis2": second, "dtype": dtype}
    return call.value(invoke("jnp.trace", x, **options))


SHAPES: dict[str, Native] = {
    "embedding": Native("jnp.take", _embedding),
    "gather": Native("jnp.take", _gather),
    "take_along_axis": Native("jnp.take_along_axis", _take_along),
    "gather_nd": Native("x[ids]", _gather_nd),
    "one_hot": Native("jax.nn.one_hot", _one_hot),
    "scatter_slices": Native("x.at[ids].set, …", _scatter_slices),
    "scatter_nd": Native("x.at[ids].set, …", _scatter_nd),
    "segment_reduce": Native("jax.ops.segment_sum, …", _segment_reduce),
    "reshape": reshaped("jnp.reshape"),
    "flatten": Native("jnp.reshape", _flatten),
    "squeeze": Native("jnp.squeeze", _squeeze),
    "expand_dims": Native("jnp.expand_dims", _expand_dims),
    "transpose": Native("jnp.transpose", _transpose),
    "concat": _joined("jnp.concatenate", 0),
    "stack": _joined("jnp.stack", 1),
    "split": Native("jnp.split", _split),
    "pad": Native("jnp.pad", _pad),
    "repeat": Native("jnp.repeat", _repeat),
    "repeat_each": Native("jnp.repeat", _repeat_each),
    "tile": Native("jnp.tile", _tile),
    "reverse": Native("jnp.flip", _flip),
    "roll": Native("jnp.roll", _roll),
    "slice": subscript(),
    "slice_update": Native("jax.lax.dynamic_update_slice", _slice_update),
    "broadcast_to": Native("jnp.broadcast_to", _broadcast),
    "trilu": Native("jnp.triu, jnp.tril", _trilu),
    "meshgrid": Native("jnp.meshgrid", _meshgrid),
    "resize": Native("jax.image.resize", _resize),
    "diagonal": Native("jnp.diagonal", _diagonal),
    "trace": Native("jnp.trace", _trace),
    "kron": plain("jnp.kron"),
    "stop_gradient": plain("jax.lax.stop_gradient"),
}
