"""How a model file is run in a script: beside it, or with the model written into the script."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from irlang.lower.target import describe


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
    narrow: str
    narrow_imports: str = ""


_RUNTIME = Runner(
    "import onnxruntime",
    "str({path})",
    "{model}",
    """options = onnxruntime.SessionOptions()
options.intra_op_num_threads = 1
{settings}session = onnxruntime.InferenceSession(
    {source}, options, providers=[{providers}]
){checked}""",
    "[node.name for node in session.get_inputs()]",
    "[node.name for node in session.get_outputs()]",
    "session.run(NAMES, inputs)",
    """    # 16 is TensorProto.BFLOAT16
    make = onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type
    whole = onnxruntime.OrtValue.ortvalue_from_numpy
    feeds = {
        name: make(value, 16) if name in BFLOAT16 else whole(value)
        for name, value in inputs.items()
    }
    results = {}
    for name, value in zip(NAMES, session.run_with_ort_values(NAMES, feeds)):
        if name in BFLOAT16:
            shape = tuple(value.shape())
            size = 2 * int(np.prod(shape))
            data = ctypes.string_at(value.data_ptr(), size) if size else b""
            results[name] = np.frombuffer(data, np.uint16).reshape(shape)
        else:
            results[name] = value.numpy()
    return results
""",
    "import ctypes",
)
_REFERENCE = Runner(
    "import onnx\nfrom onnx.reference import ReferenceEvaluator",
    "onnx.load({path})",
    "onnx.load_from_string({model})",
    "evaluator = ReferenceEvaluator({source})",
    "evaluator.input_names",
    "evaluator.output_names",
    "evaluator.run(None, inputs)",
    """    values = {
        name: value.view(ml_dtypes.bfloat16) if name in BFLOAT16 else value
        for name, value in inputs.items()
    }
    results = dict(zip(NAMES, evaluator.run(None, values)))
    return {
        name: np.asarray(value).view(np.uint16) if name in BFLOAT16 else value
        for name, value in results.items()
    }
""",
    "import ml_dtypes",
)
# A port that is a result as well has the name of the result: it is known by its place. A result
# that is an input as well gets a name of its own, unlike the node that gives it.
_OPENVINO = Runner(
    "import openvino",
    "str({path})",
    "{model}",
    """model = openvino.Core().read_model({source})
compiled = openvino.compile_model(model, "CPU", {{{settings}}})


def fed(inputs):
    \"\"\"The inputs by port.\"\"\"
    ports = {{port.get_node().get_friendly_name(): port for port in compiled.inputs}}
    others = iter([name for name in inputs if name not in ports])
    return {{port: inputs[name if name in inputs else next(others)]
            for name, port in ports.items()}}

""",
    "file.files",
    """[
    port.get_node().get_friendly_name().partition("/sink_port_")[0] for port in compiled.outputs
]""",
    "compiled(fed(inputs)).values()",
    """    feeds = fed(inputs)
    for port, value in feeds.items():
        if port.element_type == openvino.Type.bf16:
            feeds[port] = openvino.Tensor(value, openvino.Shape(value.shape), openvino.Type.bf16)
    results = dict(zip(NAMES, compiled(feeds).values()))
    return {
        name: value.view(np.uint16) if name in BFLOAT16 else value
        for name, value in results.items()
    }
""",
)
# What is inferred of a shape, as an array of zeros.
_OF_SHAPE = '''


def of_shape(inferred, value):
    """Zeros of an inferred shape; what is not known of it is as in `value`."""
    if not inferred:
        return np.zeros_like(value)
    sizes = [*value.shape, *[1] * len(inferred)]
    return np.zeros([n if isinstance(n, int) else s for n, s in zip(inferred, sizes)], value.dtype)

'''
_INFERRED = replace(
    _RUNTIME,
    load=_RUNTIME.load + _OF_SHAPE,
    ran="[of_shape(node.shape, value) for node, value in zip("
    "session.get_outputs(), session.run(NAMES, inputs))]",
)
_INFERENCE = Runner(
    "import onnx",
    "onnx.load({path})",
    "onnx.load_from_string({model})",
    '''model = {source}
kinds = [port.type.tensor_type for port in model.graph.output]
right = [[size.dim_value for size in kind.shape.dim] for kind in kinds]
for kind in kinds:
    kind.ClearField("shape")
symbolic = onnx.ModelProto()
symbolic.CopyFrom(model)
for port in symbolic.graph.input:
    for axis, size in enumerate(port.type.tensor_type.shape.dim):
        size.dim_param = f"{{port.name}}_{{axis}}"


def inferred():
    """Zeros of the shapes that are inferred, with sizes and else with symbols for them."""
    shapes = list(right)
    for asked in (model, symbolic):
        found = onnx.shape_inference.infer_shapes(asked, strict_mode=True, data_prop=True)
        for at, port in enumerate(found.graph.output):
            kind = port.type.tensor_type
            if kind.HasField("shape") and shapes[at] == right[at]:
                own = [*right[at], *[1] * len(kind.shape.dim)]
                known = zip(kind.shape.dim, own)
                shapes[at] = [n.dim_value if n.HasField("dim_value") else o for n, o in known]
    types = [onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type) for kind in kinds]
    return [np.zeros(shape, dtype) for shape, dtype in zip(shapes, types)]

''',
    "[port.name for port in model.graph.input]",
    "[port.name for port in model.graph.output]",
    "inferred()",
    "    return dict(zip(NAMES, inferred()))\n",
)
# CUDA's libraries may be pip's packages; without them the processor computes, and nothing is said.
_PRELOAD = """if hasattr(onnxruntime, "preload_dlls"):
    onnxruntime.preload_dlls()
"""
_CHECKED = """
if session.get_providers()[0] != "CUDAExecutionProvider":
    raise SystemExit("onnxruntime cannot load its CUDA provider")"""
_OFF = "onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL"


def runner(framework: str, mode: str) -> tuple[Runner, dict[str, str]]:
    """What runs a model file as a target does, a mode of a framework, and its settings."""
    if mode == "onnx-reference":
        return _REFERENCE, {}
    if mode == "onnx:shapes":
        return _INFERENCE, {}
    if framework == "openvino":
        # as in a worker: what is checked, and how, may differ where there are several threads
        threads = "2 if model.is_dynamic() else 1"
        said = [f'"INFERENCE_NUM_THREADS": {threads}', '"INFERENCE_PRECISION_HINT": "f32"']
        return _OPENVINO, {"settings": ", ".join(said[: 1 + (mode != "default")])}
    names = ["CUDAExecutionProvider"] * (mode == "cuda") + ["CPUExecutionProvider"]
    plain = mode in ("plain", "shapes")
    settings = f"options.graph_optimization_level = {_OFF}\n" if plain else ""
    return _INFERRED if mode == "shapes" else _RUNTIME, {
        "settings": settings + _PRELOAD * (mode == "cuda"),
        "providers": ", ".join(f'"{name}"' for name in names),
        "checked": _CHECKED * (mode == "cuda"),
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


def function(framework: str, mode: str, model: str, path: str, narrow: Sequence[str] = ()) -> str:
    """A module's text with a function `run` of the inputs by name.

    model: a statement `MODEL = …` of the file's bytes, if they stand in the text; path: else an
    expression for where the file is. narrow: the inputs and results that are bfloat16.
    """
    parts, settings = runner(framework, mode)
    source = parts.held.format(model="MODEL") if model else parts.read.format(path=path)
    imports = parts.imports if not model else f"import base64\n{parts.imports}"
    body, known = f"    return dict(zip(NAMES, {parts.ran}))\n", ""
    if narrow:
        imports = f"{imports}\n{parts.narrow_imports}".strip()
        body, known = parts.narrow, f"BFLOAT16 = {tuple(narrow)!r}\n"
    return (
        f"{imports}\n\n{model}{parts.load.format(source=source, **settings)}\n"
        f"NAMES = {parts.names}\n{known}\n\ndef run(inputs):\n"
        f'    """The outputs by name."""\n{body}'
    )


def is_plain(target: str) -> bool:
    """Whether what runs a target's model files gives results in the order of the model's."""
    return describe(target).framework in ("onnxruntime", "onnx")


def session(framework: str, mode: str, held: bool, path: str) -> tuple[str, str, str]:
    """What loads a model, what that imports, and an expression for the results of `inputs`.

    held: whether `MODEL` has the file's bytes; path: else an expression for where the file is.
    """
    parts, settings = runner(framework, mode)
    source = parts.held.format(model="MODEL") if held else parts.read.format(path=path)
    ran = parts.ran.replace("NAMES", "None")
    return parts.load.format(source=source, **settings), parts.imports, ran


def results(code: bytes) -> list[str]:
    """The names of a model's results, in order."""
    import onnx

    return [port.name for port in onnx.load_model_from_string(code).graph.output]


def listing(code: bytes) -> str:
    """A model as text: its opsets, then inputs, results, constants and nodes as `onnx.printer`
    writes them.
    """
    import onnx
    import onnx.printer

    model = onnx.load_model_from_string(code)
    opsets = ", ".join(f"{o.domain or 'ai.onnx'} {o.version}" for o in model.opset_import)
    return f"Opset: {opsets}\n{onnx.printer.to_text(model.graph)}"
