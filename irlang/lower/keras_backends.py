"""What Keras computes with: how each backend is chosen, and what has to be there for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Backend:
    """A backend. packages: distributions that hold it; extra: irlang's that installs both, if any;
    alone, says_no,
    share, patience: see `irlang.lower.target.Mode`.
    """

    name: str
    packages: tuple[str, ...]
    extra: str
    environment: Mapping[str, str]
    alone: str = ""
    says_no: str = ""
    share: int = 2
    patience: float = 1.0


# Where TensorFlow has an operator, but no kernel of it for the type or the device, or for nothing.
NO_KERNEL = (
    r"Could not find (valid )?device for node|No registered '\w+' OpKernel"
    r"|No OpKernel was registered|is not in the list of allowed values"
    r"|does not support grouped convolutions on the CPU|CPU implementations do not yet support"
    r"|must not have zero elements|must be stric\w+ positive, got 0"
)
_ADD = (
    "irlang target add keras-theano --pip keras==2.3.1 theano==1.0.5 numpy==1.23.5 'scipy<1.11' "
    "'setuptools<60'"
)
# Without a library of linear algebra; and elements one function after another: what is fused is
# compiled anew for every program. Processes that compile wait for one another: a second at a time,
# not five to ten: of two campaigns of windows side by side 3 and 15 programs were run in 60 s.
_FLAGS = "blas.ldflags=,floatX=float32,optimizer_excluding=fusion,compile.wait=1"
_THEANO = {"KERAS_BACKEND": "theano", "THEANO_FLAGS": _FLAGS}
# What PyTorch documents of probabilities; and Keras makes i32 of i64 there, as JAX does.
_NO_TORCH = (
    "all elements of (input|target) should be between 0 and 1"
    "|cannot be converted to type int32 without overflow"
)
_JAX = {"KERAS_BACKEND": "jax", "JAX_ENABLE_X64": "1"}
# Convolutions with channels first have kernels in oneDNN alone, which is off where a processor has
# no AVX-512: so that a program can do the same on every machine, it asks for it.
_TENSORFLOW = {"KERAS_BACKEND": "tensorflow", "TF_ENABLE_ONEDNN_OPTS": "1"}
BACKENDS = {
    "tensorflow": Backend(
        "TensorFlow",
        ("tensorflow", "tensorflow-cpu"),
        "tf",
        _TENSORFLOW,
        share=1,
        says_no=NO_KERNEL,
    ),
    "shapes": Backend(
        "TensorFlow, by the shapes that Keras infers for symbols",
        ("tensorflow", "tensorflow-cpu"),
        "tf",
        _TENSORFLOW,
        share=4,
        says_no=NO_KERNEL,
    ),
    "torch": Backend(
        "PyTorch", ("torch", "torch-cpu"), "tf,torch", {"KERAS_BACKEND": "torch"}, says_no=_NO_TORCH
    ),
    "jax": Backend("JAX", ("jax",), "tf,jax", _JAX, share=16, says_no="does not accept dtype"),
    "theano": Backend(
        "Theano, of Keras 2.3",
        ("theano",),
        "",
        _THEANO,
        alone=_ADD,
        share=16,
        patience=6.0,
        says_no="must be 1-d or 2-d tensor",  # its softmax
    ),
}
