"""What Keras computes with: how each backend is chosen, and what has to be there for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Backend:
    """A backend. packages: distributions that hold it; extra: irlang's that installs both."""

    name: str
    packages: tuple[str, ...]
    extra: str
    environment: Mapping[str, str]


_JAX = {"KERAS_BACKEND": "jax", "JAX_ENABLE_X64": "1"}
BACKENDS = {
    "tensorflow": Backend(
        "TensorFlow", ("tensorflow", "tensorflow-cpu"), "tf", {"KERAS_BACKEND": "tensorflow"}
    ),
    "torch": Backend("PyTorch", ("torch", "torch-cpu"), "tf,torch", {"KERAS_BACKEND": "torch"}),
    "jax": Backend("JAX", ("jax",), "tf,jax", _JAX),
}
