"""Programs that a framework transforms: two samples at once, and derivatives in forward mode.

By `vmap` two samples are computed together, of which the second is the program's own and the first
has its numbers in other places, so that what is mixed up between both shows. Inputs have them along
their first axis and their last in turn, parameters are shared. Where an operator refuses the other
sample, both are the same. Gradients are those of every sample.

By `forward` every real input carries a derivative along with it; gradients are taken by columns.
"""

from __future__ import annotations

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
_TORCH_RUN = '''
def run(inputs, params):
    """The outputs as arrays by name."""
    values = [tensor(name, inputs[name]) for name in INPUTS]
    values += [tensor(name, params[name]) for name in PARAMS]
    with torch.no_grad():
        results = batched({function}, values)
    return {{name: array(name, value) for name, value in zip(OUTPUTS, results)}}
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
_TORCH_GRADIENTS = '''
def gradients(inputs, params):
    """The gradients of the loss by the names of the real inputs and parameters."""
    values = {{name: tensor(name, inputs[name]) for name in INPUTS}}
    values.update((name, tensor(name, params[name])) for name in PARAMS)
    found = {{name: value for name, value in values.items() if value.is_floating_point()}}
    wanted = [name for name, value in found.items() if value.numel()]

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
_JAX_RUN = '''
def run(inputs, params):
    """The outputs as arrays by name."""
    values = [tensor(name, inputs[name]) for name in INPUTS]
    values += [tensor(name, params[name]) for name in PARAMS]
    results = batched({function}, values)
    return {{name: array(name, value) for name, value in zip(OUTPUTS, results)}}
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
_JAX_GRADIENTS = '''
def gradients(inputs, params):
    """The gradients of the loss by the names of the real inputs and parameters."""
    values = {{name: tensor(name, inputs[name]) for name in INPUTS}}
    values.update((name, tensor(name, params[name])) for name in PARAMS)
    found = {{n: v for n, v in values.items() if jnp.issubdtype(v.dtype, jnp.floating)}}
    wanted = [name for name, value in found.items() if value.size]

    def loss(*values):
        return {function}(*values)[-1]

    if wanted:
        places = tuple(place for place, name in enumerate(values) if name in wanted)
        found.update(zip(wanted, TAKEN))
    return {{name: array(name, value) for name, value in found.items()}}
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
_TF_RUN = '''
def run(inputs, params):
    """The outputs as arrays by name."""
    values = [tensor(name, inputs[name]) for name in INPUTS]
    values += [tensor(name, params[name]) for name in PARAMS]
    results = batched({function}, values)
    return {{name: array(name, value) for name, value in zip(OUTPUTS, results)}}
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
_BY_SAMPLE = "batched({0}.grad(loss, places), [*values.values()])"
# What one element does not change is told by a derivative of 0, of which an infinite slope of
# another makes NaN: that is as forward mode is, and says nothing of this element. Where there is
# no NaN reverse mode is not asked, which may refuse what forward mode has a rule for.
_TORCH_COLUMNS = '''

def column(loss, place, values):
    """The gradient by one value in forward mode, of 64 of its elements at a time."""
    value, found = values[place], []

    def slope(direction):
        def moved(value):
            return loss(*values[:place], value, *values[place + 1 :])

        return torch.func.jvp(moved, (value,), (direction,))[1]

    for start in range(0, value.numel(), 64):
        rows = torch.arange(start, min(start + 64, value.numel()))
        ones = F.one_hot(rows, value.numel()).to(value.dtype).reshape(-1, *value.shape)
        found.append(torch.vmap(slope, randomness="different")(ones))
    return torch.cat(found).reshape(value.shape)


def columns(loss, places, values):
    """Gradients in forward mode; those in reverse mode where an infinite slope times 0 is NaN."""
    found = [column(loss, place, values) for place in places]
    # They have the loss's type, and zeros that are not stored have no array.
    found = [value.to(values[place].dtype).clone() for value, place in zip(found, places)]
    if not any(value.isnan().any() for value in found):
        return found
    back = torch.func.grad(loss, places)(*values)
    return [torch.where(value.isnan(), other, value) for value, other in zip(found, back)]
'''
_JAX_COLUMNS = '''

def column(loss, place, values):
    """The gradient by one value in forward mode, of 64 of its elements at a time."""
    value = values[place]

    def slope(direction):
        def moved(value):
            return loss(*values[:place], value, *values[place + 1 :])

        return jax.jvp(moved, (value,), (direction,))[1]

    several, found = jax.jit(jax.vmap(slope)), []
    for start in range(0, value.size, 64):
        rows = jnp.arange(start, min(start + 64, value.size))
        ones = jax.nn.one_hot(rows, value.size, dtype=value.dtype).reshape(-1, *value.shape)
        found.append(several(ones))
    return jnp.concatenate(found).reshape(value.shape)


def columns(loss, places, values):
    """Gradients in forward mode; those in reverse mode where an infinite slope times 0 is NaN."""
    found = [column(loss, place, values) for place in places]
    found = [value.astype(values[place].dtype) for value, place in zip(found, places)]  # the loss's
    if not any(jnp.isnan(value).any() for value in found):
        return found
    back = jax.jit(jax.grad(loss, places))(*values)
    return [jnp.where(jnp.isnan(value), other, value) for value, other in zip(found, back)]
'''
_BY_COLUMN = "columns(loss, places, [*values.values()])"
_DUALS = "\nfrom torch.autograd.forward_ad import dual_level, make_dual, unpack_dual"


def _taken(text: str, how: str) -> str:
    return text.replace("TAKEN", how)


def torch_transformed(layout: Layout, mode: str) -> Layout:
    """PyTorch's programs by `torch.vmap`, or with `torch.func.jvp`."""
    layout = replace(layout, watched="", watched_run="", slopes=None)
    if mode == "vmap":
        return replace(
            layout, framework="PyTorch, two samples by torch.vmap", wrapper=_TORCH_BATCH,
            run=_TORCH_RUN, gradients=_taken(_TORCH_GRADIENTS, _BY_SAMPLE.format("torch.func")),
        )  # fmt: skip
    return replace(
        layout, framework="PyTorch, gradients in forward mode", imports=layout.imports + _DUALS,
        run=_TORCH_DUAL_RUN,
        gradients=_TORCH_COLUMNS + "\n" + _taken(_TORCH_GRADIENTS, _BY_COLUMN),
    )  # fmt: skip


def jax_transformed(layout: Layout, mode: str) -> Layout:
    """JAX's programs by `jax.vmap`, or with `jax.jvp`; compiled."""
    layout = replace(layout, watched="", watched_run="", slopes=None)
    if mode == "vmap":
        return replace(
            layout, framework="JAX, two samples by jax.vmap", wrapper=_JAX_BATCH, run=_JAX_RUN,
            gradients=_taken(_JAX_GRADIENTS, _BY_SAMPLE.format("jax")),
        )  # fmt: skip
    return replace(
        layout, framework="JAX, gradients in forward mode", run=_JAX_DUAL_RUN,
        gradients=_JAX_COLUMNS + "\n" + _taken(_JAX_GRADIENTS, _BY_COLUMN),
    )  # fmt: skip


def tf_batched(layout: Layout) -> Layout:
    """TensorFlow's programs by `tf.vectorized_map`."""
    return replace(
        layout, framework="TensorFlow, two samples by tf.vectorized_map", watched="",
        watched_run="", slopes=None, wrapper=_TF_BATCH, run=_TF_RUN, gradients=_TF_GRADIENTS,
    )  # fmt: skip
