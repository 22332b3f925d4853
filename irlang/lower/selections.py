"""Results that are as long as the data make them, as frameworks spell them that run line by line.

Definitions have room for so much: what is found is filled up, and cut off. JAX has that itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from irlang.lower.call import Call, Native, Rule
from irlang.lower.spelling import invoke
from irlang.lower.value import Value

_WIDE = ("f32", "f64")
_COUNTED = ("f32", "f64", "i32", "i64")
_MOST = (
    1 << 20
)  # elements that are filled in: what no memory holds is not the framework's own doing


@dataclass(frozen=True, slots=True)
class Spelling:
    """Templates: of what is `found`, `axis` and a `filling`, both; a tensor of a `shape` that is
    `full` of a `number`, and the first `size` along an axis.
    """

    joined: str
    full: str
    first: str

    def room(
        self, call: Call[Any], found: str, number: int = 0, filling: float = 0, axis: int = 0
    ) -> Value:
        """The result of a number, of the first that were found, and fillings."""
        info = call.outputs[number]
        shown = {"bool": str(bool(filling))}.get(info.dtype, str(filling))
        shape = [max(size, 0) for size in info.shape]  # of a size below 0 the operator is to say no
        full = self.full.format(shape=shape, number=shown, dtype=call.build.dtype(info.dtype))
        joined = self.joined.format(found=found, filling=full, axis=axis)
        first = self.first.format(joined=joined, colons=":, " * axis, size=shape[axis])
        return call.value(first, number)


_TORCH = Spelling(
    "torch.cat([{found}, {filling}], {axis})",
    "torch.full({shape}, {number}, dtype={dtype})",
    "{joined}[{colons}:{size}]",
)
TF_ROOM = Spelling(
    "tf.concat([{found}, {filling}], {axis})",
    "tf.cast(tf.fill({shape}, {number}), {dtype})",
    "{joined}[{colons}:{size}]",
)

_KERAS = Spelling(
    "ops.concatenate([{found}, {filling}], {axis})",
    "ops.full({shape}, {number}, dtype={dtype})",
    "{joined}[{colons}:{size}]",
)
MX = Spelling(
    "mx.np.concatenate([{found}, {filling}], axis={axis})",
    "mx.np.full({shape}, {number}, dtype={dtype})",
    "{joined}[{colons}:{size}]",
)

_UNIQUE = ("found", "places", "counts")  # what functions of unique elements give


def _filled(name: str, rule: Rule, eager: bool = True) -> Native:
    """A row whose result has room for `size`."""
    return Native(name, lambda call: rule(call) if call["size"] <= _MOST else None, eager=eager)


def _nonzero(spelling: Spelling, function: str, lacks: Sequence[str] = ()) -> Native:
    def rule(call: Call[Any]) -> Value | None:
        x = call.input("x")
        if not x.rank or x.dtype in lacks:
            return None
        return spelling.room(call, invoke(function, x), filling=-1)

    return _filled(function, rule)


def _compress(spelling: Spelling, name: str, text: Callable[[str, str, int], str]) -> Native:
    def rule(call: Call[Any]) -> Value:
        x = call.input("x")
        axis = call.axis("axis", x.rank)
        inner = call.build.inner(x)
        return spelling.room(call, text(inner, call.input("keep").text, axis), axis=axis)

    return _filled(name, rule)


def _torch_unique(call: Call[Any]) -> Sequence[Value] | None:
    x = call.input("x")
    if call["order"] != "sorted" or x.dtype.startswith(("u16", "u32", "u64")):
        return None
    options = {"return_inverse": True, "return_counts": True}
    found, places, counts = call.build.several(invoke("torch.unique", x, **options), *_UNIQUE)
    return _TORCH.room(call, found), _TORCH.room(call, counts, 1), call.value(places, 2)


def _tf_unique(call: Call[Any]) -> Sequence[Value] | None:
    x = call.input("x")
    if call["order"] != "first" or x.dtype not in _COUNTED:
        return None
    text = invoke("tf.unique_with_counts", x, out_idx="tf.int64")
    found, places, counts = call.build.several(text, *_UNIQUE)
    return TF_ROOM.room(call, found), TF_ROOM.room(call, counts, 1), call.value(places, 2)


def _tf_boxes(call: Call[Any]) -> Value | None:
    boxes, scores = call.input("boxes"), call.input("scores")
    if boxes.dtype != "f32" or call["center"]:
        return None
    options = {
        "iou_threshold": float(call["iou_threshold"]),
        "score_threshold": float(call["score_threshold"]),
    }
    text = invoke("tf.image.non_max_suppression", boxes, scores, call["size"], **options)
    return TF_ROOM.room(call, f"tf.cast({text}, tf.int64)", filling=-1)


def _jax_nonzero(call: Call[Any]) -> Value | None:
    x = call.input("x")
    if not x.rank:
        return None
    text = invoke("jnp.nonzero", x, size=call["size"], fill_value=-1)
    return call.value(f"jnp.stack({text}, -1).astype({call.build.dtype('i64')})")


def _jax_compress(call: Call[Any]) -> Value:
    x = call.input("x")
    options = {"axis": call.axis_said("axis", x.rank), "size": call["size"], "fill_value": 0}
    return call.value(invoke("jnp.compress", call.input("keep"), x, **options))


def _jax_unique(call: Call[Any]) -> Sequence[Value] | None:
    x = call.input("x")
    if call["order"] != "sorted" or call["size"] < x.shape[0]:
        return None  # what is cut off has no place
    options = {"return_inverse": True, "return_counts": True, "size": call["size"]}
    text = invoke("jnp.unique", x, **options, fill_value=0)
    found, places, counts = call.build.several(text, *_UNIQUE)
    cast = f".astype({call.build.dtype('i64')})"
    return call.value(found), call.value(f"{counts}{cast}", 1), call.value(f"{places}{cast}", 2)


def _keras_nonzero(call: Call[Any]) -> Value | None:
    x = call.input("x")
    if not x.rank:
        return None
    found = f'ops.cast(ops.stack({invoke("ops.nonzero", x)}, -1), "int64")'
    return _KERAS.room(call, found, filling=-1)


def _keras_unique(call: Call[Any]) -> Sequence[Value] | None:
    x = call.input("x")
    if call["order"] != "sorted" or x.dtype not in _COUNTED:
        return None
    options = {"return_inverse": True, "return_counts": True}
    found, places, counts = call.build.several(invoke("ops.unique", x, **options), *_UNIQUE)
    whole = 'ops.cast({}, "int64")'
    return (
        _KERAS.room(call, found),
        _KERAS.room(call, whole.format(counts), 1),
        call.value(whole.format(places), 2),
    )


def _mx_unique(call: Call[Any]) -> Sequence[Value] | None:
    """MXNet finds nothing in a tensor without elements but a type of its own."""
    x = call.input("x")
    if call["order"] != "sorted" or not x.shape[0] or x.dtype == "f16":
        return None
    options = {"return_inverse": True, "return_counts": True}
    found, places, counts = call.build.several(invoke("mx.np.unique", x, **options), *_UNIQUE)
    return MX.room(call, found), MX.room(call, counts, 1), call.value(places, 2)


TORCH_SELECTIONS = {
    "nonzero": _nonzero(_TORCH, "torch.nonzero"),
    "compress": _compress(
        _TORCH, "Tensor.__getitem__", lambda x, keep, axis: f"{x}[{':, ' * axis}{keep}]"
    ),
    "unique": _filled("torch.unique", _torch_unique),
}
TF_SELECTIONS = {
    "nonzero": _nonzero(TF_ROOM, "tf.where", ("f16", "bf16")),
    "compress": _compress(
        TF_ROOM,
        "tf.boolean_mask",
        lambda x, keep, axis: f"tf.boolean_mask({x}, {keep}, axis={axis})",
    ),
    "unique": _filled("tf.unique_with_counts", _tf_unique),
    "non_max_suppression": _filled("tf.image.non_max_suppression", _tf_boxes),
}
JAX_SELECTIONS = {
    "nonzero": _filled("jnp.nonzero", _jax_nonzero, eager=False),
    "compress": _filled("jnp.compress", _jax_compress, eager=False),
    "unique": _filled("jnp.unique", _jax_unique, eager=False),
}
KERAS_SELECTIONS = {
    name: replace(row, since=(3,))
    for name, row in {
        "nonzero": _filled("ops.nonzero", _keras_nonzero),
        "unique": _filled("ops.unique", _keras_unique),
    }.items()
}
MX_SELECTIONS = {
    "nonzero": _nonzero(MX, "mx.npx.nonzero"),
    "unique": replace(_filled("mx.np.unique", _mx_unique), constant=("x",)),
}
