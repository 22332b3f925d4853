"""How JAX spells products and systems of equations."""

from __future__ import annotations

from irlang.lower.call import Call, Native
from irlang.lower.jax_builder import JaxBuilder
from irlang.lower.numpy_words import inner, matrix_norm
from irlang.lower.spelling import invoke, named, of_wide, plain, turned
from irlang.lower.value import Value

Jax = Call[JaxBuilder]


def _cholesky(call: Jax) -> Value:
    """jnp.linalg.cholesky reads the mean of both triangles, so the lower one stands in both.

    What is added is a constant: gradients flow as they do for a symmetric matrix.
    """
    x = call.build.solid(call.input("x"))
    text = f"jnp.tril({x.text}) + jnp.tril({x.text}, -1).mT - {call.build.inner(x)}"
    rest = call.build.detach(Value(text, x.shape, x.dtype, atom=False))
    return call.value(f"jnp.linalg.cholesky({x.text} + {rest.text})")


def _log_determinant(call: Jax) -> list[Value]:
    return named(call, invoke("jnp.linalg.slogdet", call.input("x")))


def _tensordot(call: Jax) -> Value:
    a, b = call.input("a"), call.input("b")
    axes = call.axes_said("a_axes", a.rank), call.axes_said("b_axes", b.rank)
    return call.value(invoke("jnp.tensordot", a, b, axes=axes))


def _set_diagonal(call: Jax) -> Value | None:
    """The main one, of one matrix."""
    x, diagonal = call.input("x"), call.input("diagonal")
    if x.rank != 2 or call["offset"]:
        return None
    return call.value(invoke("jnp.fill_diagonal", x, diagonal, inplace=False))


def _tridiagonal(call: Jax) -> Value:
    rows = [f"{call.text('diagonals')}[..., {row}, :]" for row in (2, 1, 0)]
    return call.value(invoke("jax.lax.linalg.tridiagonal_solve", *rows, call.input("b")))


MATRICES: dict[str, Native] = {
    "set_diagonal": Native("jnp.fill_diagonal", _set_diagonal),
    "inner": inner("jnp.inner"),
    "matrix_norm": matrix_norm("jnp.linalg.matrix_norm"),
    "cholesky": of_wide(Native("jnp.linalg.cholesky", _cholesky)),
    "tridiagonal_solve": of_wide(Native("jax.lax.linalg.tridiagonal_solve", _tridiagonal)),
    "solve": of_wide(plain("jnp.linalg.solve")),
    "log_determinant": of_wide(Native("jnp.linalg.slogdet", _log_determinant)),
    "matrix_power": plain("jnp.linalg.matrix_power", n="n"),
    "vander": plain("jnp.vander", N="columns", increasing="increasing"),
    "tensordot": Native("jnp.tensordot", _tensordot),
    "rot90": turned("jnp.rot90"),
}
