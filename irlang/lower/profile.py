"""Arithmetic profiles: what is accepted of a target's arithmetic beyond the standard, and why.

`PROFILES` says what targets document of themselves. A file of the user's adds to it, so that what
is known and accepted is not reported:

```toml
[[accept]]
target = "onnxruntime*"       # a glob pattern
function = "sigmoid"          # of `irlang.scalar`
absolute = 2.0                # in units in the last place of 1; `ulps` is relative to the value
reason = "a rational approximation that is good for large values"   # must be given

[[accept]]
target = "torch:cuda"
factors = "tf32"              # factors of sums of products are rounded to it
reason = "torch.backends.cuda.matmul.allow_tf32"
```
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from irlang.arithmetic import FORMATS, STANDARD, Allowance, Arithmetic
from irlang.diagnostics import fail
from irlang.lower.entries import read_entries
from irlang.lower.target import Description, describe
from irlang.scalar import SCALARS

_MOST_ULPS = 2.0**40


@dataclass(frozen=True, slots=True)
class Accepted:
    """One thing that is accepted of the targets that a pattern matches.

    settings: fields of `Arithmetic` with their values; or else the allowance of a function.
    """

    target: str
    reason: str
    settings: tuple[tuple[str, Any], ...] = ()
    function: str = ""
    allowance: Allowance = field(default_factory=Allowance)

    def added(self, to: Arithmetic) -> Arithmetic:
        """An arithmetic that allows this as well; of an allowance the wider counts."""
        if not self.function:
            return replace(to, **dict(self.settings))
        before = to.allowance(self.function)
        wider = Allowance(
            max(before.ulps, self.allowance.ulps), max(before.absolute, self.allowance.absolute)
        )
        return replace(to, functions={**to.functions, self.function: wider})


# What targets say of themselves, by the names of frameworks and their modes.
PROFILES = (
    Accepted(
        "torch*", "normalisations multiply the scale into both terms of x - mean"
        " (batch_norm_cpu_collect_linear_and_constant_terms)",
        (("distributes", True),),
    ),
    Accepted(
        "keras:*", "LayerNormalization and GroupNormalization compute x * scale - mean * scale",
        (("distributes", True),),
    ),
    *(
        Accepted(
            "keras:theano", "in Python it counts exp(x) as 0 below -30", function=name,
            allowance=Allowance(absolute=1e-6),
        )
        for name in ("sigmoid", "softplus")
    ),
    *(
        Accepted(
            name, "graph optimisation multiplies scales into the weights of Conv and MatMul",
            (("distributes", True),),
        )
        for name in ("onnxruntime", "onnxruntime:cuda")
    ),
    Accepted(
        "onnxruntime:plain", "InstanceNormalization computes x * scale + (bias - mean * scale)",
        (("distributes", True),),
    ),
    Accepted(
        "tf", "tf.nn.batch_normalization computes x * scale + (offset - mean * scale)",
        (("distributes", True),),
    ),
    Accepted(
        "tf:keras", "LayerNormalization calls tf.nn.batch_normalization",
        (("distributes", True),),
    ),
    Accepted(
        "tf:graph", "Grappler's remapper and arithmetic optimizer fold and fuse calls",
        (("distributes", True),),
    ),
    Accepted(
        "tf:graph", "Grappler adds up in another order (AddOpsRewrite)",
        (("reorders", True),),
    ),
    Accepted("tf:xla", "XLA's algebraic simplifier reassociates", (("distributes", True),)),
    Accepted("jax:jit", "XLA's algebraic simplifier reassociates", (("distributes", True),)),
    Accepted(
        "tflite", "its converter multiplies constants into weights", (("distributes", True),),
    ),
    Accepted("*:tf32", "its programs allow TF32 in products of f32", (("factors", "tf32"),)),
    *(
        Accepted(name, "cuDNN convolves by Winograd's and Fourier's transforms", (("fast", 1.0),))
        for name in (
            "torch:cuda", "torch:triton", "torch:tf32", "jax:gpu", "jax:tf32", "tf:gpu", "tf:tf32",
            "onnxruntime:cuda",
        )
    ),
    Accepted(
        "onnxruntime:cuda", "the provider's option use_tf32 is on", (("factors", "tf32"),),
    ),
    Accepted(
        "onnxruntime:cuda", "Gelu is x * normcdff(x), off by 5 units in the last place"
        " (CUDA C++ Programming Guide, Mathematical Functions)",
        function="erf", allowance=Allowance(absolute=5.0),
    ),
    Accepted("openvino*", "multiplications are fused into weights", (("distributes", True),)),
    Accepted(
        "openvino:default", "sums of products are computed in bfloat16 where the processor has it",
        (("factors", "bf16"),),
    ),
    *(
        Accepted(name, why, (("folds", True),))
        for name, why in (
            *(
                (name, "scales become a factor of products of matrices (MatMulScaleFusion)")
                for name in ("onnxruntime", "onnxruntime:cuda")
            ),
            ("tflite", "its converter multiplies constants into weights"),
            ("tf:graph", "Grappler moves products with constants past other calls"),
            ("tf:xla", "XLA's algebraic simplifier moves scalars past sums of products"),
            ("jax:jit", "XLA's algebraic simplifier moves scalars past sums of products"),
            ("openvino*", "multiplications are fused into weights"),
        )
    ),
    *(
        Accepted(
            name, "conversions to f16 between calls that are computed in f32 are taken away"
            " (InsertCastTransformer)", (("carries", True),),
        )
        for name in ("onnxruntime", "onnxruntime:plain", "onnxruntime:cuda")
    ),
    *(
        Accepted(
            name, "fused calls hand on f32 (emulate_precision_casts is off)", (("carries", True),),
        )
        for name in ("torch:compile", "torch:triton")
    ),
    Accepted("openvino*", "models in f16 are computed in f32", (("carries", True),)),
)  # fmt: skip


# Targets that keep whole numbers of 64 bits in 32, and what says so.
_SHORT = {
    "openvino*": "its plugin for processors converts i64 to i32 before it compiles a model",
    **dict.fromkeys(
        ("keras:torch", "keras:jax"), "keras.backend.result_type has 32 bits where NumPy has 64"
    ),
}


def is_short(target: str) -> bool:
    """Whether a target keeps whole numbers of 64 bits in 32."""
    framework = describe(target).worker.framework
    return any(fnmatchcase(framework, pattern) for pattern in _SHORT)


# Targets whose kernels hold every result between the least and the largest finite number, and why.
_FINITE = {"tflite": "no activation behind an operator is one that ends at the largest number"}


def is_finite(target: str) -> bool:
    """Whether a target gives the largest number in the place of an infinity, by many operators."""
    return describe(target).worker.framework in _FINITE


def arithmetic(target: Description, accepted: Sequence[Accepted] = ()) -> Arithmetic:
    """The arithmetic of a target, with what the user accepts of it."""
    found = STANDARD
    own = [one for one in PROFILES if fnmatchcase(target.worker.framework, one.target)]
    for one in (*own, *(one for one in accepted if fnmatchcase(target.name, one.target))):
        found = one.added(found)
    return found


def read_profile(path: Path) -> tuple[Accepted, ...]:
    """What a file accepts. Raises `file.profile`, with the entry that is at fault."""
    entries = read_entries(path, "accept", "file.profile", "a profile")
    return tuple(_entry(f"{path}: entry {n}", entry) for n, entry in enumerate(entries, 1))


def _format(value: Any) -> bool:
    return isinstance(value, str) and value in FORMATS


def _number(value: Any) -> bool:
    real = isinstance(value, (int, float)) and not isinstance(value, bool)
    return real and 0 <= value <= _MOST_ULPS


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _truth(value: Any) -> bool:
    return isinstance(value, bool)


_SETTINGS = {
    "flush": (_truth, "true or false"),
    "distributes": (_truth, "true or false"),
    "folds": (_truth, "true or false"),
    "carries": (_truth, "true or false"),
    "reorders": (_truth, "true or false"),
    "factors": (_format, f"one of {', '.join(FORMATS)}"),
    "sums": (_format, f"one of {', '.join(FORMATS)}"),
    "fast": (_number, "a number that is not negative"),
}
_OF_FUNCTIONS = ("ulps", "absolute")
_KEYS = ("target", "reason", "function", *_OF_FUNCTIONS, *_SETTINGS)


def _entry(where: str, entry: Any) -> Accepted:
    if not isinstance(entry, dict):
        raise fail("file.profile", f"{where} is no table")
    for key, value in entry.items():
        if key not in _KEYS:
            raise fail("file.profile", f"{where} has `{key}`", help=f"it has {', '.join(_KEYS)}")
        test, wanted = _SETTINGS.get(key, (_number, "a number that is not negative"))
        if key in ("target", "reason", "function"):
            test, wanted = _text, "a text"
        if not test(value):
            raise fail("file.profile", f"{where}: `{key}` must be {wanted}")
    for key, help_ in (("target", 'as in target = "tf"'), ("reason", 'as in reason = "issue 12"')):
        if not entry.get(key):
            raise fail("file.profile", f"{where} says no `{key}`", help=help_)
    function = entry.get("function", "")
    settings = tuple((key, entry[key]) for key in _SETTINGS if key in entry)
    limits = {key: float(entry[key]) for key in _OF_FUNCTIONS if key in entry}
    if function:
        row = SCALARS.get(function)
        if row is None or (row.ulps == 0 and row.symbol):
            raise fail(
                "file.profile", f"{where}: there is no function `{function}` that is rounded",
                help="as exp, sigmoid or /; `irlang ops NAME` shows the functions of a definition",
            )  # fmt: skip
    if bool(function) != bool(limits) or bool(function) == bool(settings):
        raise fail(
            "file.profile", f"{where} accepts nothing, or several things",
            help="a `function` with `ulps` or `absolute`; or one or more of "
            + ", ".join(_SETTINGS),
        )  # fmt: skip
    return Accepted(entry["target"], entry["reason"], settings, function, Allowance(**limits))
