"""JAX's further words for places: updates that are told what may be assumed of them."""

from __future__ import annotations

from collections.abc import Callable

from irlang.lower.call import Call, Native
from irlang.lower.jax_builder import JaxBuilder
from irlang.lower.spelling import invoke
from irlang.lower.value import Value

Jax = Call[JaxBuilder]
_AT = {"none": "set", "add": "add", "mul": "multiply", "max": "max", "min": "min"}


def _picked(mode: str) -> Native:
    """What is assumed of places, which are inside."""

    def rule(call: Jax) -> Value:
        x, ids = call.input("x"), call.input("ids")
        place = f"{':, ' * call.axis('axis', x.rank)}{ids.text}"
        return call.value(f'{call.build.inner(x)}.at[{place}].get(mode="{mode}")')

    return Native(f'x.at[ids].get(mode="{mode}")', rule)


def _taken(mode: str) -> Native:
    """clip: of places that are not counted from the end."""

    def rule(call: Jax) -> Value | None:
        x, ids = call.input("x"), call.input("ids")
        axis = call.axis_said("axis", x.rank)
        if (mode == "clip" and call["negative"] != "refused") or not x.shape[axis]:
            return None
        return call.value(invoke("jnp.take", x, ids, axis=axis, mode=f'"{mode}"'))

    return Native(f"jnp.take, {mode}", rule)


def _rows(call: Jax) -> Value:
    return call.value(f"{call.build.inner(call.input('table'))}[{call.text('ids')}]")


def _along(mode: str) -> Native:
    def rule(call: Jax) -> Value | None:
        x, ids = call.input("x"), call.input("ids")
        if mode != "fill" and call["negative"] != "refused":
            return None
        options = {"axis": call.axis_said("axis", x.rank), "mode": f'"{mode}"'}
        return call.value(invoke("jnp.take_along_axis", x, ids, **options))

    return Native(f"jnp.take_along_axis, {mode}", rule)


def _updated(mode: str, place: Callable[[Jax], str | None]) -> Native:
    """What is done with a place that is outside, of which there is none."""

    def rule(call: Jax) -> Value | None:
        x, reduction, where = call.input("x"), call["reduction"], place(call)
        if where is None or (reduction != "none" and x.dtype == "bool"):
            return None
        updates = call.input("updates").text
        text = f'{call.build.inner(x)}.at[{where}].{_AT[reduction]}({updates}, mode="{mode}")'
        return call.value(text)

    return Native(f'x.at[ids].set(mode="{mode}")', rule)


def _slices(call: Jax) -> str:
    axis = call.axis("axis", call.input("x").rank)
    return f"{':, ' * axis}{call.text('ids')}"


def _elements(call: Jax) -> str | None:
    ids = call.input("ids")
    if not ids.rank or not ids.shape[-1]:
        return None
    text = call.build.let(ids, "ids").text
    return ", ".join(f"{text}[..., {n}]" for n in range(ids.shape[-1]))


def _every_place(call: Jax) -> str | None:
    """Of each element all of its places, of which one is told."""
    x, ids = call.input("x"), call.input("ids")
    if not x.rank or ids.rank != x.rank:
        return None
    axis = call.axis("axis", x.rank)
    places = []
    for n, size in enumerate(ids.shape):
        behind = ", None" * (x.rank - 1 - n)
        places.append(ids.text if n == axis else f"jnp.arange({size})[:{behind}]")
    return ", ".join(places)


def _scattered(call: Jax) -> Value | None:
    places, x = _every_place(call), call.input("x")
    if places is None or (call["reduction"] != "none" and x.dtype == "bool"):
        return None
    updates = call.input("updates").text
    return call.value(f"{call.build.inner(x)}.at[{places}].{_AT[call['reduction']]}({updates})")


def _put_along(call: Jax) -> Value | None:
    x, ids = call.input("x"), call.input("ids")
    if call["reduction"] != "none" or not x.rank:
        return None
    axis = call.axis_said("axis", x.rank)
    others = (*range(x.rank),)
    if any(ids.shape[n] != x.shape[n] for n in others if n != call.axis("axis", x.rank)):
        return None
    given = (x, ids, call.input("updates"))
    return call.value(invoke("jnp.put_along_axis", *given, axis, inplace=False))


def _set(call: Jax) -> Value | None:
    """Any slices, as Python writes them."""
    x, update = call.input("x"), call.input("update")
    if not x.rank or x.rank != update.rank:
        return None
    places = []
    for first, step, size in zip(call["begin"], call["step"], update.shape, strict=True):
        end = first + (size - 1) * step + 1 if size else first
        places.append(f"{first}:{end}" + (f":{step}" if step != 1 else ""))
    return call.value(f"{call.build.inner(x)}.at[{', '.join(places)}].set({update.text})")


def _nonzero(call: Jax) -> Value | None:
    x = call.input("x")
    if not x.rank:
        return None
    text = invoke("jnp.argwhere", x, size=call["size"], fill_value=-1)
    return call.value(f"{text}.astype({call.build.dtype('i64')})")


def _unique(call: Jax) -> list[Value] | None:
    x = call.input("x")
    if call["order"] != "sorted" or call["size"] < x.shape[0]:
        return None
    text = invoke("jnp.unique_all", x, size=call["size"], fill_value=0)
    names = call.build.several(text, "found", "first", "places", "counts")
    cast = f".astype({call.build.dtype('i64')})"
    found, _, places, counts = names
    return [call.value(found), call.value(f"{counts}{cast}", 1), call.value(f"{places}{cast}", 2)]


PLACES: dict[str, Native | tuple[Native, ...]] = {
    "gather": (_picked("promise_in_bounds"), _picked("clip"), _taken("clip"), _taken("wrap")),
    "embedding": Native("table[ids]", _rows),
    "take_along_axis": (_along("clip"), _along("promise_in_bounds"), _along("fill")),
    "scatter_slices": (
        _updated("promise_in_bounds", _slices),
        _updated("drop", _slices),
        _updated("clip", _slices),
    ),
    "scatter_nd": (
        _updated("promise_in_bounds", _elements),
        _updated("drop", _elements),
        _updated("clip", _elements),
    ),
    "scatter_elements": (
        Native("x.at[places].set, …", _scattered),
        Native("jnp.put_along_axis", _put_along),
        _updated("drop", _every_place),
    ),
    "slice_update": Native("x.at[begin:end:step].set", _set),
    "nonzero": Native("jnp.argwhere", _nonzero),
    "unique": Native("jnp.unique_all", _unique),
}
