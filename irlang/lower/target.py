"""The targets: a table of what each is called, what it needs, and whether it is there.

A target is a framework, `tf`, or one of its modes, `tf:xla`, or a version in an environment of its
own (`irlang.lower.added`), `tf-2.4` or `tf-2.4:xla`. Nothing here imports a framework; what is
installed is read from the metadata of packages.
"""

from __future__ import annotations

import difflib
import os
import platform
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any, Literal

from irlang.diagnostics import InvalidInput, fail
from irlang.lower import pool
from irlang.lower.added import Added, added
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
# A function, or an argument of one, that came later.
_LATER = r"module '\S+' has no attribute|got an unexpected keyword argument"
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
                    "PyTorch with derivatives beside values; gradients by torch.func.jacfwd",
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
                ":forward": Mode("JAX with derivatives beside values; gradients by jax.jacfwd",
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


@dataclass(frozen=True, slots=True)
class Description:
    """What is known of a target here; `reason` says what is missing and how to get it.

    framework: whose programs it runs, a key of `ROWS`. mode: what stands behind the colon, or the
    name of one of `KIN`. release: the version's first numbers. usual: whether it is a framework in
    its usual mode, as compared where no target is named. kernels: see `irlang.lower.added`.
    says_no: see `Mode`. compiles: whether it takes its time over a program, however short. plain:
    the target that runs the same programs as they are; empty of one that does so itself, and where
    there is none. sooner: likewise the target that refuses the same in a part of its time.
    """

    name: str
    installed: bool
    version: str | None
    python: str
    reason: str
    about: str
    share: int
    framework: str
    mode: str
    usual: bool
    release: tuple[int, ...]
    kernels: Mapping[str, frozenset[str]] = field(repr=False)
    worker: pool.Target = field(repr=False)
    says_no: str = ""
    compiles: bool = False
    plain: str = ""
    sooner: str = ""

    def as_json(self) -> dict[str, object]:
        """As `irlang targets --format json` shows it."""
        keys = ("name", "installed", "version", "python", "reason", "about", "share")
        return {key: getattr(self, key) for key in keys}


@cache
def _version(packages: tuple[str, ...]) -> str | None:
    for package in packages:
        try:
            return metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return None


def numbers(version: str | None) -> tuple[int, ...]:
    """The first numbers of a version: (2, 4, 0) of 2.4.0rc1."""
    found = re.match(r"\d+(\.\d+)*", version or "")
    return tuple(map(int, found[0].split("."))) if found else ()


def describe(name: str) -> Description:
    """One target. Raises `usage.target` where there is none of that name."""
    if name in KIN:
        framework, mode = KIN[name]
        return _described(name, ROWS[framework], name, mode, None)
    base, colon, behind = name.partition(":")
    own = None if base in ROWS else added(base)
    row = ROWS.get(own.framework if own else base)
    if own and row is not None and not colon:
        return describe_added(own)
    if row is not None and row.about and not colon:
        return _described(name, row, "", row.usual, None)
    if row is not None and colon + behind in row.modes:
        return _described(name, row, behind, row.modes[colon + behind], own)
    if own and row is not None and behind in inside(own.framework):
        return _described(name, row, behind, KIN[behind][1], own)
    known = names()
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.4)
    help_ = f"did you mean `{near[0]}`?" if near else f"there are {', '.join(known)}"
    raise fail("usage.target", f"there is no target `{name}`", help=help_)


def inside(framework: str) -> list[str]:
    """The targets that come with a framework and have a name of their own: modes of one that is
    added.
    """
    return [name for name, (own, mode) in KIN.items() if own == framework and not mode.packages]


def describe_added(own: Added) -> Description:
    """What is described as a target, whether or not it is remembered."""
    row = ROWS[own.framework]
    mode = row.modes.get(f":{own.mode}", row.usual)
    return _described(own.name, row, own.mode, replace(mode, about=own.about), own)


def _described(name: str, row: Row, key: str, mode: Mode, own: Added | None) -> Description:
    packages = mode.packages or row.packages
    version = own.version if own else _version(packages)
    missing = [packages[0]] if version is None else []
    missing += [package for package in row.needs if _version((package,)) is None]
    if mode.needs and own is None and _version(mode.needs) is None:
        missing.append(mode.needs[0])
    missing = list(dict.fromkeys(missing))
    reason = ""
    if mode.gpu and not _gpu():
        reason = "no GPU of NVIDIA is found here"
    elif missing:
        extra = mode.extra or row.extra
        verb = "is" if len(missing) == 1 else "are"
        how = mode.alone or f"pip install 'irlang[{extra}]'"
        reason = f"{' and '.join(missing)} {verb} not installed: {how}"
    elif own and not own.interpreter.exists():
        reason = f"{own.interpreter} is gone: irlang target remove {own.name}, and add it again"
    elif mode.until and numbers(version) >= mode.until:
        reason = f"{row.name} {version} has Keras 3, which is keras:tensorflow"
    elif mode.compiler and not _compiler():
        reason = "no C++ compiler is found: install g++ or clang++, or set CXX"
    worker = pool.Target(
        name, options=mode.options, patience=mode.patience, environment=mode.environment,
        framework=key if key in KIN else f"{row.name}:{key}" if key else row.name,
    )  # fmt: skip
    if own:
        worker = own.on(worker)
    return Description(
        name, not reason, version, own.python if own else platform.python_version(), reason,
        mode.about, mode.share, row.name, key, not key and own is None, numbers(version),
        own.kernels if own else {}, worker,
        _says_no(row, mode, own),
        mode.patience > 1 and not mode.piecewise, _beside(name, key, mode.plain),
        _beside(name, key, mode.sooner),
    )  # fmt: skip


def _says_no(row: Row, mode: Mode, own: Added | None) -> str:
    """What a target says, as a pattern, of what it does not support: an added release likewise of
    functions and arguments that came later.
    """
    if own and row.unasked and not own.kernels:
        return row.unasked
    later = own is not None and row.kind == "python"
    return "|".join(filter(None, [mode.says_no, _LATER if later else ""]))


def _beside(name: str, key: str, other: str | None) -> str:
    """Another mode of a target's framework, by what stands behind the framework's name."""
    base, _, behind = name.partition(":")
    return base + other if other is not None and behind == key else ""


def _gpu() -> bool:
    """Whether the driver of a GPU is there; the worker says whether the framework can use it."""
    return Path("/dev/nvidiactl").exists() or shutil.which("nvidia-smi") is not None


def _compiler() -> str | None:
    found = [os.environ.get("CXX", ""), "g++", "clang++", "c++"]
    return next((path for name in found if name and (path := shutil.which(name))), None)


def names() -> list[str]:
    """Every target's name: frameworks and their modes, kin, and what the user has added."""
    from irlang.lower.added import names as own

    found = []
    for row in ROWS.values():
        found += [row.name] if row.about else []
        found += [row.name + mode for mode in row.modes]
    return [*found, *KIN, *own()]


def targets() -> list[Description]:
    """Every target, installed or not; one whose record cannot be read is not."""
    return [_shown(name) for name in names()]


def _shown(name: str) -> Description:
    try:
        return describe(name)
    except InvalidInput as error:
        (said,) = error.diagnostics
        reason = f"{said.message}: {said.help}"
    nothing = pool.Target(name)
    return Description(name, False, None, "", reason, reason, 1, "", "", False, (), {}, nothing)


def usual() -> list[str]:
    """The installed frameworks that are quick, in their usual mode: what is compared where no
    target is named.
    """
    frameworks = [row.name for row in ROWS.values() if row.about and row.share == 1]
    return [target.name for target in map(describe, frameworks) if target.installed]


def require_installed(name: str) -> Description:
    """A target that can be used. Raises `usage.target` (not one) or `target.missing`."""
    found = describe(name)
    if not found.installed:
        raise fail(
            "target.missing", f"{name}: {found.reason}" if name not in ROWS else found.reason
        )
    return found
