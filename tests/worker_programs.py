"""Programs for workers, as text."""

import textwrap
from typing import Any

import numpy as np

from irlang.lower.pool import Program

DOUBLE = """
    import numpy as np

    INPUTS = ("x",)
    OUTPUTS = ("y",)

    def run(inputs, params):
        return {"y": 2 * inputs["x"] + params.get("b", 0)}

    def gradients(inputs, params):
        return {"x": np.full_like(inputs["x"], 2)}
"""


def program(code: str, grad: bool = False, **inputs: Any) -> Program:
    return Program("python", textwrap.dedent(code), inputs, grad=grad)


def body(statements: str, **inputs: Any) -> Program:
    """A program whose `run` is `statements`."""
    head = "import os, sys, time\nimport numpy as np\nINPUTS, OUTPUTS = (), ()\n"
    run = "def run(inputs, params):\n" + textwrap.indent(textwrap.dedent(statements), "    ")
    return Program("python", head + run, inputs)


def double(value: float) -> Program:
    return program(DOUBLE, x=np.array([value]))
