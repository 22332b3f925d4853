"""irlang: neural network operators, each defined once as text, and all that follows from it.

A definition in ``irlang/ops/*.nnir`` is the only statement of what an operator means. The checker,
the oracle, the fuzzer's choice of inputs and the comparison with frameworks are derived from it.

``irlang.load(path)`` and ``irlang.loads(text)`` give a `Model` that runs, compares and lowers,
``irlang.op(name)`` an `Operator`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from irlang.api import Model, Operator, analyze, check, import_model, load, loads, op
    from irlang.diagnostics import Diagnostic, InvalidInput

__version__ = "0.1.0"
__all__ = [
    "Diagnostic",
    "InvalidInput",
    "Model",
    "Operator",
    "analyze",
    "check",
    "import_model",
    "load",
    "loads",
    "op",
]


def __getattr__(name: str) -> Any:
    """The interface is imported when it is used, so that `import irlang` costs nothing."""
    if name not in __all__:
        raise AttributeError(f"module 'irlang' has no attribute '{name}'")
    import importlib

    module = "irlang.diagnostics" if name in ("Diagnostic", "InvalidInput") else "irlang.api"
    return getattr(importlib.import_module(module), name)
