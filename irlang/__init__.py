"""irlang: neural network operators, each defined once as text, and all that follows from it.

A definition in ``irlang/ops/*.nnir`` is the only statement of what an operator means. The checker,
the oracle, the fuzzer's choice of inputs and the comparison with frameworks are derived from it.
"""

__version__ = "0.1.0"
