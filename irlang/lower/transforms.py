"""Programs that a framework transforms: two samples at once, and derivatives in forward mode.

By `vmap` two samples are computed together, of which the second is the program's own and the first
has its numbers in other places, so that what is mixed up between both shows. Inputs have them along
their first axis and their last in turn, parameters are shared. Where an operator refuses the other
sample, both are the same. Gradients are those of every sample.

By `forward` every real input carries a derivative along with it; gradients are taken by columns.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from irlang.lower.python_program import Layout

_TORCH_BATCH = '''
def beside(values, axes, other):
    """Two samples of what has an axis for them: another one, and the program's."""
    pairs = zip(values, axes)
    return [v if axis is None else torch.stack([other(v), v], axis) for v, axis in pairs]


def batched(function, values):
    """What a function gives for the second of two samples that are computed together."""
    count = len(INPUTS) or len(values)
    if not count:
        return function(*values)
    axes = tuple(v.dim() * (i % 2) if i < count else None for i, v in enumerate(values))
    both = torch.vmap(function, axes, randomness="different")
    try:
        found = both(*beside(values, axes, lambda value: value.roll(1)))
    except (RuntimeError, IndexError, ValueError):  # the other sample may be refused
        found = both(*beside(values, axes, lambda value: value))
    return [value[1] for value in found]
'''
_TORCH_DUAL_RUN = '''
def run(inputs, params):
    """The outputs as arrays by name, computed with derivatives beside them."""
    values = [tensor(name, inputs[name]) for name in INPUTS]
    values += [tensor(name, params[name]) for name in PARAMS]
    with dual_level():
        duals = [make_dual(v, torch.ones_like(v)) if v.is_floating_point() else v for v in values]
        results = [unpack_dual(value).primal for value in {function}(*duals)]
    return {{name: array(name, value) for name, value in zip(OUTPUTS, results)}}
'''
# Of what has no elements the gradient has none, either.
_GRADIENTS = '''
def gradients(inputs, params):
    """The gradients of the loss by the names of the real inputs and parameters."""
    values = {{name: tensor(name, inputs[name]) for name in INPUTS}}
    values.update((name, tensor(name, params[name])) for name in PARAMS)
    found = {{name: value for name, value in values.items() if REAL}}
    wanted = [name for name, value in found.items() if SIZE]

    def loss(*values):
        return {function}(*values)[-1]

    if wanted:
        places = tuple(place for place, name in enumerate(values) if name in wanted)
        found.update(zip(wanted, TAKEN))
    return {{name: array(name, value) for name, value in found.items()}}
'''
_JAX_BATCH = '''
def batched(function, values):
    """What a function gives for the second of two samples that are computed together."""
    count = len(INPUTS) or len(values)
    if not count:
        return jax.jit(function)()
    axes = tuple(v.ndim * (i % 2) if i < count else None for i, v in enumerate(values))
    pairs = [
        v if axis is None else jnp.stack([jnp.roll(v, 1), v], axis)
        for v, axis in zip(values, axes)
    ]
    found = jax.jit(jax.vmap(function, axes))(*pairs)
    return [value[1] for value in found]
'''
_JAX_DUAL_RUN = '''
def run(inputs, params):
    """The outputs as arrays by name, computed with derivatives beside them."""
    values = {{name: tensor(name, inputs[name]) for name in INPUTS}}
    values.update((name, tensor(name, params[name])) for name in PARAMS)
    real = {{n: v for n, v in values.items() if jnp.issubdtype(v.dtype, jnp.floating)}}

    def computed(real):
        return {function}(*{{**values, **real}}.values())

    slopes = {{name: jnp.ones_like(value) for name, value in real.items()}}
    results, _ = jax.jit(lambda real: jax.jvp(computed, (real,), (slopes,)))(real)
    return {{name: array(name, value) for name, value in zip(OUTPUTS, results)}}
'''
_TF_BATCH = '''
def rolled(value):
    return tf.reshape(tf.roll(tf.reshape(value, [-1]), 1, 0), value.shape)


def batched(function, values):
    """What a function gives for the second of two samples that are computed together."""
    count = len(INPUTS) or len(values)
    if not count:
        return function()

    def sample(own):
        return tuple(function(*own, *values[count:]))

    def both(other):
        pairs = tuple(tf.stack([other(value), value]) for value in values[:count])
        return tf.vectorized_map(sample, pairs, fallback_to_while_loop=False)

    try:
        found = both(rolled)
    except tf.errors.InvalidArgumentError:  # the other sample may be refused
        found = both(tf.identity)
    return [value[1] for value in found]
'''
_TF_GRADIENTS = '''
def gradients(inputs, params):
    """The gradients of the loss by the names of the real inputs and parameters."""
    values = {{name: tensor(name, inputs[name]) for name in INPUTS}}
    values.update((name, tensor(name, params[name])) for name in PARAMS)
    wanted = [name for name, value in values.items() if value.dtype.is_floating]

    def slopes(*values):
        chosen = [value for value in values if value.dtype.is_floating]
        with tf.GradientTape() as tape:
            tape.watch(chosen)
            loss = {function}(*values)[-1]
        found = tape.gradient(loss, chosen, unconnected_gradients="zero")
        return [tf.convert_to_tensor(value) for value in found]

    found = batched(slopes, [*values.values()]) if wanted else []
    return {{name: array(name, value) for name, value in zip(wanted, found)}}
'''
_BY_SAMPLE = "batched(FUNC.grad(loss, places), [*values.values()])"
# What one element does not change is told by a derivative of 0, of which an infinite slope of
# another makes NaN: that is as forward mode is, and says nothing of this element. Where there is
# no NaN reverse mode is not asked, which may refuse what forward mode has a rule for.
_COLUMNS = '''
def column(loss, place, values):
    """The gradient by one value in forward mode, of 64 of its elements at a time."""
    value = values[place]

    def slope(direction):
        def moved(value):
            return loss(*values[:place], value, *values[place + 1 :])

        return FUNC.jvp(moved, (value,), (direction,))[1]

    several, found = SEVERAL, []
    for start in range(0, SIZE, 64):
        rows = ARRAYS.arange(start, min(start + 64, SIZE))
        ones = ONES.reshape(-1, *value.shape)
        found.append(several(ones))
    return ARRAYS.JOINED(found).reshape(value.shape)


def columns(loss, places, values):
    """Gradients in forward mode; those in reverse mode where an infinite slope times 0 is NaN."""
    found = [column(loss, place, values) for place in places]
    # They have the loss's type.
    found = [CAST for value, place in zip(found, places)]
    if not any(ARRAYS.isnan(value).any() for value in found):
        return found
    back = BACK(*values)
    pairs = zip(found, back)
    return [ARRAYS.where(ARRAYS.isnan(value), other, value) for value, other in pairs]


'''
# What each of both says in its place; zeros of PyTorch that are not stored have no array.
_TORCH = {
    "REAL": "value.is_floating_point()",
    "FUNC": "torch.func",
    "ONES": "F.one_hot(rows, value.numel()).to(value.dtype)",
    "SIZE": "value.numel()",
    "SEVERAL": 'torch.vmap(slope, randomness="different")',
    "JOINED": "cat",
    "CAST": "value.to(values[place].dtype).clone()",
    "BACK": "torch.func.grad(loss, places)",
    "ARRAYS": "torch",
}
_JAX = {
    "REAL": "jnp.issubdtype(value.dtype, jnp.floating)",
    "FUNC": "jax",
    "ONES": "jax.nn.one_hot(rows, value.size, dtype=value.dtype)",
    "SIZE": "value.size",
    "SEVERAL": "jax.jit(jax.vmap(slope))",
    "JOINED": "concatenate",
    "CAST": "value.astype(values[place].dtype)",
    "BACK": "jax.jit(jax.grad(loss, places))",
    "ARRAYS": "jnp",
}
_BY_COLUMN = "columns(loss, places, [*values.values()])"
_DUALS = "\nfrom torch.autograd.forward_ad import dual_level, make_dual, unpack_dual"
_BY = {"PyTorch": "torch.vmap", "JAX": "jax.vmap", "TensorFlow": "tf.vectorized_map"}


def _in_words(text: str, words: Mapping[str, str]) -> str:
    for word, said in words.items():
        text = text.replace(word, said)
    return text


def _by_column(words: Mapping[str, str]) -> str:
    return _in_words(_COLUMNS + _GRADIENTS.replace("TAKEN", _BY_COLUMN).lstrip("\n"), words)


def _batched(layout: Layout, framework: str, wrapper: str, gradients: str) -> Layout:
    """The layout of programs that are computed for two samples at once."""
    run = layout.run.replace("{function}(*values)", "batched({function}, values)")
    return replace(
        layout, framework=f"{framework}, two samples by {_BY[framework]}", wrapper=wrapper, run=run,
        gradients=gradients, watched="", watched_run="", slopes=None,
    )  # fmt: skip


def torch_transformed(layout: Layout, mode: str) -> Layout:
    """PyTorch's programs by `torch.vmap`, or with `torch.func.jvp`."""
    if mode == "vmap":
        gradients = _in_words(_GRADIENTS.replace("TAKEN", _BY_SAMPLE), _TORCH)
        return _batched(layout, "PyTorch", _TORCH_BATCH, gradients)
    return replace(
        layout, framework="PyTorch, gradients in forward mode", imports=layout.imports + _DUALS,
        run=_TORCH_DUAL_RUN, gradients=_by_column(_TORCH), watched="", watched_run="", slopes=None,
    )  # fmt: skip


def jax_transformed(layout: Layout, mode: str) -> Layout:
    """JAX's programs by `jax.vmap`, or with `jax.jvp`; compiled."""
    if mode == "vmap":
        gradients = _in_words(_GRADIENTS.replace("TAKEN", _BY_SAMPLE), _JAX)
        return _batched(layout, "JAX", _JAX_BATCH, gradients)
    return replace(
        layout, framework="JAX, gradients in forward mode", run=_JAX_DUAL_RUN,
        gradients=_by_column(_JAX), watched="", watched_run="", slopes=None,
    )  # fmt: skip


def tf_batched(layout: Layout) -> Layout:
    """TensorFlow's programs by `tf.vectorized_map`."""
    return _batched(layout, "TensorFlow", _TF_BATCH, _TF_GRADIENTS)
