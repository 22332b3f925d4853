"""The frameworks and their modes, as a table: what each is, what it needs, and how it is run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from irlang.lower.keras_backends import BACKENDS, NO_KERNEL


@dataclass(frozen=True, slots=True)
class Mode:
    """A way to run a framework's programs.

    about: what it is. share: it gets one in so many of the fuzzer's programs. patience: its
    programs may take so many times as long as others. options: of the worker. worker: the name
    that the worker knows it by, if it is another, and packages: which then hold it. compiler:
    whether it needs one of C++; gpu: or a GPU. needs: distributions any of which has to be there
    too; extra: what installs all; alone: the command that does, where an extra does not. until:
    the release that has no such mode any more. says_no: a pattern of what it says where it has no
    kernel for something. environment: of its process. piecewise: whether it takes its time over
    every operation, and not over a program as a whole. plain: what stands behind the framework's
    name where the same programs are run as they are, of a mode that makes something of them first.
    sooner: likewise of a mode that refuses what this one does, in a part of its time.
    """

    about: str
    share: int = 1
    patience: float = 1.0
    options: Mapping[str, Any] = field(default_factory=dict)
    worker: str = ""
    packages: tuple[str, ...] = ()
    compiler: bool = False
    gpu: bool = False
    needs: tuple[str, ...] = ()
    extra: str = ""
    alone: str = ""
    until: tuple[int, ...] = ()
    says_no: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)
    piecewise: bool = False
    plain: str | None = None
    sooner: str | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """A framework.

    packages: distributions that hold it, any of which will do. extra: irlang's extra that installs
    it. about: its usual mode; empty where it has to be said which; share, patience, options,
    says_no, alone, piecewise, plain: of that mode; unasked: what a release says no with that was
    not asked for its kernels. needs: distributions that lowering itself needs. modes: the others,
    by what stands behind the colon.
    """

    name: str
    packages: tuple[str, ...]
    extra: str
    kind: Literal["python", "onnx"]
    about: str
    needs: tuple[str, ...] = ()
    modes: Mapping[str, Mode] = field(default_factory=dict)
    share: int = 1
    patience: float = 1.0
    options: Mapping[str, Any] = field(default_factory=dict)
    says_no: str = ""
    unasked: str = ""
    alone: str = ""
    piecewise: bool = False
    plain: str | None = None

    @property
    def usual(self) -> Mode:
        """The usual mode."""
        return Mode(
            self.about,
            self.share,
            self.patience,
            options=self.options,
            says_no=self.says_no,
            alone=self.alone,
            piecewise=self.piecewise,
            plain=self.plain,
        )


# of an element type, or a function that came later; of what is no probability; of nothing
_NO_TORCH_KERNEL = (
    r"not implemented for '\w+'|module 'torch\S*' has no attribute"
    "|all elements of (input|target) should be between 0 and 1"
    r"|to have non-zero size|must be non-empty|to be specified for input\.numel\(\) == 0"
    r"|Expected non-empty|Non-empty \dD data tensor"
    r"|(optional|possibly) 0 .*but got: ?(torch\.Size\()?\[[^]]*\b0\b"
    r"|(sizes should be greater|to be larger) than 0\b|non-positive groups is not supported"
    r"|expected weight to be at least \d+ at dimension 0, but got weight of size \[0"
)
# On a GPU numbers outside what an operator takes end the context, and the message does not say why.
_ASSERTED = "|device-side assert"
# What hangs on values is not exported, as its documentation says; of some it names the operator.
_NOT_EXPORTED = r"|guard on data-dependent expression|^aten\.\w+\.\w+\s*($|The error above)"
_NOT_EXPORTED += (
    r"|could not find kernel for aten\.\w+\.\w+ at dispatch key"  # of quantised tensors
)
# What hangs on values has no shape without them, and some kernels are written for processors alone.
_NOT_ON_META = (
    r"|from the 'Meta' backend|no fake impl|out of meta tensor|data-dependent|on device meta"
    r"|^aten::\S+$|zero-size dimension for reduction|called on meta tensors|a meta tensor without"
)
# What has no rule for samples side by side, or none in forward mode, as their documentation says.
_NOT_BATCHED = (
    r"|vmap: |[Bb]atching rule not implemented|forward AD with \S+ that does not support it"
    r"|does not support (calling )?forward|functorch|from the 'SparseCPU' backend"
    r"|cannot have forward grad|forward grad that itself has a forward gradient"
    "|Only per-tensor quantization is supported in 'cat'"  # samples run one by one, put together
)
_NOT_VECTORIZED = (
    "|No pfor vectorization defined|No converter defined|pfor|expected to be (not )?loop invariant"
)
_NO_MXNET_KERNEL = "not implemented!|Unknown type enum|If not using CUDNN|only supported by CuDNN"
_NO_MXNET_KERNEL += r"|req\[\S+\] (!= kAddTo|== k\w+)"  # gradients are not added to what is there
# Functions of arrays that symbols have not; a graph without inputs, and without any that counts.
_NO_SYMBOL = (
    "|has no attribute|NotImplementedError|not implemented for Symbol"
    "|missing 1 required positional argument|no inputs in computation graph"
)
# With the operators that it has not, or not for tensors whose sizes are not known.
_UNCONVERTED = (
    "OpConversionFailure|Unsupported operation of type|doesn't support .* with dynamic"
    "|does not support the following ONNX operations|Element type of data input must be"
)
_NO_JAX_FUNCTION = (
    r"module 'jax\S*' has no attribute|does not accept dtype"
    "|gradients are only implemented if unique_indices"
)
ROWS = {
    row.name: row
    for row in (
        Row(
            "torch", ("torch", "torch-cpu"), "torch", "python", "PyTorch, operator by operator",
            says_no=_NO_TORCH_KERNEL,
            modes={
                ":compile": Mode(
                    "torch.compile with Inductor, which needs a C++ compiler", share=32,
                    patience=6.0, compiler=True, environment={"TORCHINDUCTOR_COMPILE_THREADS": "1"},
                    says_no=_NO_TORCH_KERNEL, plain="", sooner=":aot",
                ),
                ":aot": Mode(
                    "torch.compile without Inductor: what it makes of operators, run as it is",
                    share=4, patience=3.0, says_no=_NO_TORCH_KERNEL, plain="",
                ),
                ":export": Mode(
                    "the program of torch.export.export, run again", share=4,
                    says_no=_NO_TORCH_KERNEL + _NOT_EXPORTED, plain="",
                ),
                ":meta": Mode(
                    "PyTorch's meta device: the shapes of results, without values", share=4,
                    says_no=_NO_TORCH_KERNEL + _NOT_ON_META, plain="",
                ),
                ":vmap": Mode(
                    "torch.vmap: two samples at once; gradients by torch.func.grad of each",
                    share=4, says_no=_NO_TORCH_KERNEL + _NOT_BATCHED, plain="",
                ),
                ":forward": Mode(
                    "PyTorch with derivatives beside values; gradients by torch.func.jvp",
                    share=4, patience=3.0, says_no=_NO_TORCH_KERNEL + _NOT_BATCHED, plain="",
                ),
                ":triton": Mode(
                    "torch.compile on a GPU, where Inductor writes kernels for Triton", share=32,
                    patience=6.0, compiler=True, gpu=True,
                    environment={"TORCHINDUCTOR_COMPILE_THREADS": "1"},
                    says_no=_NO_TORCH_KERNEL + _ASSERTED, plain=":cuda",
                ),
                ":cuda": Mode("PyTorch on a GPU, f32 in full", gpu=True,
                              says_no=_NO_TORCH_KERNEL + _ASSERTED),
                ":tf32": Mode("PyTorch on a GPU, products of f32 in TF32", gpu=True,
                              says_no=_NO_TORCH_KERNEL + _ASSERTED),
            },
        ),
        Row(
            "tf", ("tensorflow", "tensorflow-cpu", "tensorflow-macos"), "tf", "python",
            "TensorFlow, operator by operator", says_no=NO_KERNEL,
            modes={
                ":graph": Mode("tf.function: a graph, improved by Grappler", share=4,
                               says_no=NO_KERNEL, plain=""),
                ":xla": Mode("tf.function(jit_compile=True): compiled by XLA", share=16,
                             patience=3.0, says_no=NO_KERNEL, plain=""),
                ":vmap": Mode("tf.vectorized_map: two samples at once", share=8, patience=3.0,
                              says_no=NO_KERNEL + _NOT_VECTORIZED, plain=""),
                ":gpu": Mode("TensorFlow on a GPU, f32 in full", packages=("tensorflow",), gpu=True,
                             says_no=NO_KERNEL),
                ":tf32": Mode("TensorFlow on a GPU, products of f32 in TF32", gpu=True,
                              packages=("tensorflow",), says_no=NO_KERNEL),
                ":shapes": Mode("tf.function: the shapes that tracing infers, sizes unknown or not",
                                share=8, says_no=NO_KERNEL),
                ":keras": Mode("tf.keras, with the layers of Keras 2", until=(2, 16),
                               says_no=NO_KERNEL),
            },
        ),
        Row(
            "jax", ("jax",), "jax", "python", "JAX, operator by operator", share=16, patience=6.0,
            piecewise=True, says_no=_NO_JAX_FUNCTION,
            modes={
                ":jit": Mode("jax.jit: compiled by XLA as a whole", share=8, patience=3.0,
                             says_no=_NO_JAX_FUNCTION, plain=""),
                ":vmap": Mode("jax.vmap: two samples at once, compiled by XLA", share=8,
                              patience=3.0, says_no=_NO_JAX_FUNCTION, plain=""),
                ":forward": Mode("JAX with derivatives beside values; gradients by jax.jvp",
                                 share=8, patience=3.0, says_no=_NO_JAX_FUNCTION, plain=""),
                **{
                    mode: Mode(
                        f"JAX on a GPU, {how}", share=16, gpu=True, patience=6.0, piecewise=True,
                        says_no=_NO_JAX_FUNCTION,
                        alone="pip install 'jax[cuda13]'",
                        needs=("jax-cuda13-plugin", "jax-cuda12-plugin"),
                    )
                    for mode, how in ((":gpu", "f32 in full"),
                                      (":tf32", "products of f32 in TF32"))
                },
            },
        ),
        Row(
            "mxnet", ("mxnet",), "", "python", "MXNet, operator by operator",
            says_no=_NO_MXNET_KERNEL,
            alone="irlang target add mxnet-1.6 --pip mxnet==1.6.0 numpy==1.23.5",
            modes={
                ":hybrid": Mode(
                    "MXNet's HybridBlock, hybridized: a graph of symbols, improved", share=4,
                    says_no=_NO_MXNET_KERNEL + _NO_SYMBOL, plain="",
                    alone="irlang target add mxnet-1.6 --pip mxnet==1.6.0 numpy==1.23.5",
                ),
            },
        ),
        Row(
            "keras", ("keras",), "tf", "python", "", modes={
                f":{key}": Mode(
                    f"Keras: its layers and losses, on its backend {backend.name}",
                    share=backend.share, patience=backend.patience, needs=backend.packages,
                    alone=backend.alone, says_no=backend.says_no, extra=backend.extra,
                    environment=backend.environment,
                )
                for key, backend in BACKENDS.items()
            },
        ),
        Row(
            "onnxruntime", ("onnxruntime", "onnxruntime-gpu"), "onnx", "onnx",
            "ONNX Runtime on the processor, graph optimisation full", needs=("onnx",),
            plain=":plain",
            modes={
                ":plain": Mode("ONNX Runtime, graph optimisation off",
                               options={"graph_optimization": "off"}),
                ":shapes": Mode("the shapes that ONNX Runtime infers before it runs", share=8,
                                options={"graph_optimization": "off", "shapes": True}),
                ":cuda": Mode("ONNX Runtime's CUDA provider", packages=("onnxruntime-gpu",),
                              gpu=True, alone="pip install onnxruntime-gpu"),
            },
            # A kernel that is missing behind an optimisation has another message.
            unasked="NOT_IMPLEMENTED : Could not find an implementation for",
        ),
        Row(
            "openvino", ("openvino",), "openvino", "onnx",
            "OpenVINO on the processor, in the precision of the model", needs=("onnx",), share=2,
            options={"precision": "f32"}, says_no=_UNCONVERTED,
            modes={
                ":default": Mode(
                    "OpenVINO in the precision that the processor is fastest in", share=4,
                    says_no=_UNCONVERTED,
                ),
            },
        ),
    )
}  # fmt: skip
# A target of every framework: its usual mode, or the first of those that it has to be told.
FIRST = tuple(r.name if r.about else r.name + next(iter(r.modes)) for r in ROWS.values())
# Targets that take another framework's programs and have a name of their own.
KIN = {
    "onnx-reference": (
        "onnxruntime",
        Mode(
            "onnx.reference, ONNX's own evaluator in NumPy",
            packages=("onnx",),
            says_no="No (registered )?implementation for operator",
        ),
    ),
    "onnx:shapes": (
        "onnxruntime",
        Mode(
            "onnx.shape_inference, strict: the shapes of results, sizes of inputs known or not",
            share=4,
            packages=("onnx",),
            options={"shapes": True},
        ),
    ),
    "tflite": (
        "tf",
        Mode(
            "TensorFlow Lite: its converter and its interpreter",
            share=4,
            patience=2.0,
            says_no="not supported by the native TFLite runtime|neither a custom op nor a flex op"
            "|ops in the model are custom ops|only supports|Invalid tensor size"
            # of what has no elements
            "|for empty input|Tensor is unallocated|Depth of filter must not be 0"
            "|'arith.constant' op requires zero"
            # of element types that it has not
            "|Failed to convert element type|invalid TFLite type",
        ),
    ),
}
