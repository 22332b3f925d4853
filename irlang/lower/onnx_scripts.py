"""The scripts that run a model file beside them as a target does."""

from __future__ import annotations

_HEAD = '''"""Runs the model beside it on the inputs beside it and prints the outputs."""

from pathlib import Path

import numpy as np
'''
_TAIL = """    print(name, value.dtype, value.shape)
    print(value)
"""
_RUNTIME = """import onnxruntime

here = Path(__file__)
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = 1
{settings}session = onnxruntime.InferenceSession(
    str(here.with_suffix(".onnx")), options, providers=[{providers}]
)
with np.load(here.with_suffix(".inputs.npz"), allow_pickle=False) as file:
    inputs = {{node.name: file[node.name] for node in session.get_inputs()}}
names = [node.name for node in session.get_outputs()]
for name, value in zip(names, session.run(names, inputs)):
"""
_REFERENCE = """import onnx
from onnx.reference import ReferenceEvaluator

here = Path(__file__)
evaluator = ReferenceEvaluator(onnx.load(here.with_suffix(".onnx")))
with np.load(here.with_suffix(".inputs.npz"), allow_pickle=False) as file:
    inputs = {name: file[name] for name in evaluator.input_names}
for name, value in zip(evaluator.output_names, evaluator.run(None, inputs)):
"""
_OPENVINO = """import openvino

here = Path(__file__)
model = openvino.Core().read_model(str(here.with_suffix(".onnx")))
compiled = openvino.compile_model(model, "CPU"{settings})
with np.load(here.with_suffix(".inputs.npz"), allow_pickle=False) as file:
    inputs = {{port.any_name: file[port.any_name] for port in compiled.inputs}}
names = [port.any_name for port in compiled.outputs]
for name, value in zip(names, compiled(inputs).values()):
"""
_OFF = "onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL"


def script(framework: str, mode: str) -> str:
    """A program that runs a model file as a target does: a mode of a framework."""
    if mode == "onnx-reference":
        body = _REFERENCE
    elif framework == "openvino":
        settings = "" if mode == "default" else ', {"INFERENCE_PRECISION_HINT": "f32"}'
        body = _OPENVINO.format(settings=settings)
    else:
        settings = f"options.graph_optimization_level = {_OFF}\n" if mode == "plain" else ""
        names = ["CUDAExecutionProvider"] * (mode == "cuda") + ["CPUExecutionProvider"]
        providers = ", ".join(f'"{name}"' for name in names)
        body = _RUNTIME.format(settings=settings, providers=providers)
    return f"{_HEAD}{body}{_TAIL}"
