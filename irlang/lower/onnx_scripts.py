"""How a model file is run in a script: beside it, or with the model written into the script."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Runner:
    """The parts of a script.

    imports: lines. read: what loads the model file, whose path is `{path}`; held: the same where
    the bytes are `{model}`. load: lines that follow, `{source}` being one of the two. fed, names,
    ran: expressions for the names of the inputs, those of the results, and the results of
    `inputs`, a dictionary.
    """

    imports: str
    read: str
    held: str
    load: str
    fed: str
    names: str
    ran: str


_RUNTIME = Runner(
    "import onnxruntime",
    "str({path})",
    "{model}",
    """options = onnxruntime.SessionOptions()
options.intra_op_num_threads = 1
{settings}session = onnxruntime.InferenceSession(
    {source}, options, providers=[{providers}]
)""",
    "[node.name for node in session.get_inputs()]",
    "[node.name for node in session.get_outputs()]",
    "session.run(NAMES, inputs)",
)
_REFERENCE = Runner(
    "import onnx\nfrom onnx.reference import ReferenceEvaluator",
    "onnx.load({path})",
    "onnx.load_from_string({model})",
    "evaluator = ReferenceEvaluator({source})",
    "evaluator.input_names",
    "evaluator.output_names",
    "evaluator.run(None, inputs)",
)
# Of a port that is a result as well the node alone has the name of the input.
_OPENVINO = Runner(
    "import openvino",
    "str({path})",
    "{model}",
    """model = openvino.Core().read_model({source})
compiled = openvino.compile_model(model, "CPU"{settings})
ports = {{port.get_node().get_friendly_name(): port for port in compiled.inputs}}""",
    "ports",
    "[port.any_name for port in compiled.outputs]",
    "compiled({port: inputs[name] for name, port in ports.items()}).values()",
)
_OFF = "onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL"


def runner(framework: str, mode: str) -> tuple[Runner, dict[str, str]]:
    """What runs a model file as a target does, a mode of a framework, and its settings."""
    if mode == "onnx-reference":
        return _REFERENCE, {}
    if framework == "openvino":
        precise = ', {"INFERENCE_PRECISION_HINT": "f32"}'
        return _OPENVINO, {"settings": "" if mode == "default" else precise}
    names = ["CUDAExecutionProvider"] * (mode == "cuda") + ["CPUExecutionProvider"]
    settings = f"options.graph_optimization_level = {_OFF}\n" if mode == "plain" else ""
    return _RUNTIME, {
        "settings": settings,
        "providers": ", ".join(f'"{name}"' for name in names),
    }


def beside(framework: str, mode: str) -> str:
    """A program that runs the model file beside it on the inputs beside it."""
    parts, settings = runner(framework, mode)
    source = parts.read.format(path='here.with_suffix(".onnx")')
    return (
        '"""Runs the model beside it on the inputs beside it and prints the outputs."""\n\n'
        f"from pathlib import Path\n\nimport numpy as np\n{parts.imports}\n\n"
        f"here = Path(__file__)\n{parts.load.format(source=source, **settings)}\n"
        'with np.load(here.with_suffix(".inputs.npz"), allow_pickle=False) as file:\n'
        f"    inputs = {{name: file[name] for name in {parts.fed}}}\n"
        f"names = {parts.names}\n"
        f"for name, value in zip(names, {parts.ran.replace('NAMES', 'names')}):\n"
        "    print(name, value.dtype, value.shape)\n    print(value)\n"
    )


def function(framework: str, mode: str, model: str, path: str) -> str:
    """A module's text with a function `run` of the inputs by name.

    model: a statement `MODEL = …` of the file's bytes, if they stand in the text; path: else an
    expression for where the file is.
    """
    parts, settings = runner(framework, mode)
    source = parts.held.format(model="MODEL") if model else parts.read.format(path=path)
    imports = parts.imports if not model else f"import base64\n{parts.imports}"
    return (
        f"{imports}\n\n{model}{parts.load.format(source=source, **settings)}\n"
        f"NAMES = {parts.names}\n\n\ndef run(inputs):\n"
        f'    """The outputs by name."""\n    return dict(zip(NAMES, {parts.ran}))\n'
    )
