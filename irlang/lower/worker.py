# Runs under any Python >= 3.6, also one that has only an old framework: hence `typing.Dict`.
# ruff: noqa: PTH123, PTH208
"""The worker: a process that runs emitted programs on one framework and answers with arrays.

It is started as ``python worker.py TARGET [OPTIONS]`` by `irlang.lower.pool`, possibly under
another interpreter than irlang's; besides the standard library it needs NumPy and the framework.
It never imports irlang; `pool` imports this file, for the wire format.

**Wire.** Both directions carry frames: a prefix (magic, length of header, length of body), a JSON
header, and a body in which the arrays' bytes follow one another in the order in which the header
lists them as ``[name, dtype, shape]``: C order, little endian. ``bfloat16`` travels as its 16 bits.

- The worker speaks first: ``{"hello": 1, "framework", "version", "python", "numpy", "pid"}``, or
  ``{"hello": 1, "error", "message"}`` when the framework cannot be imported.
- A request is a batch, ``{"programs": [{"kind", "size", "grad", "inputs", "params", "number"}]}``,
  where the program's text or model file is ``size`` bytes of the body, before its arrays.
- One answer per program, in order and as soon as it is there: ``{"status", "error", "detail",
  "seconds", "outputs", "gradients", "retire", "number"}``. After ``retire`` the process ends.
- With the option ``apart`` every batch is run by a process that is forked for it, from one that has
  imported the framework and run nothing. What ends that process, or is to end it, is an answer too
  (``crash``, ``timeout``, ``memory``), and the next program has a fork of its own: milliseconds
  where a framework's import takes seconds.
- With the option ``listen``, the descriptor of a socket, it imports the framework, and then forks a
  worker for everyone who connects (`irlang.lower.template`). It says nothing, and ends where the
  framework cannot be imported, or has started threads, which a fork would lose.

**Programs.** ``kind: "python"`` is the source of a module that defines ``INPUTS`` and ``OUTPUTS``
(tuples of names), ``run(inputs, params)`` and, if it is trainable, ``gradients(inputs, params)``;
all take and give dictionaries from names to arrays. A bfloat16 array is handed to it as uint16. It
may return one as uint16 too if ``BFLOAT16`` (a tuple of names) says so.
``kind: "onnx"`` is a model file; its inputs are looked up among the inputs and params.

**Status.** ``ok``; ``refused``: the framework raised an exception, at ``detail["stage"]`` "build",
"run" or "gradient", or the program breaks the contract above, at stage "contract";
``memory``: an allocation failed. What ends the process is for the supervisor to see.
"""

import os
import sys

if __name__ == "__main__" and sys.path[:1] == [os.path.dirname(__file__)]:  # noqa: PTH120
    # Neighbours of this file may be named as frameworks are, and would be imported in their place.
    del sys.path[0]

import collections
import collections.abc
import contextlib
import ctypes
import faulthandler
import functools
import gc
import importlib
import json
import linecache
import platform
import select
import signal
import socket
import struct
import time
import traceback
import types
import warnings
from typing import (
    IO,
    TYPE_CHECKING,
    Any,
    Callable,
    Dict,
    Iterable,
    Iterator,
    List,
    Mapping,
    NamedTuple,
    Optional,
    Tuple,
)

import numpy as np

if TYPE_CHECKING:
    Array = np.ndarray[Any, np.dtype[Any]]
    Arrays = Dict[str, Array]

PROTOCOL = 1
MESSAGE_LIMIT = 2000
PROGRAM_FILE = "<program>"
PROGRAM_MODULE = "irlang_program"

# -- wire ----------------------------------------------------------------------------------------

_PREFIX = struct.Struct("<4sIQ")
_MAGIC = b"irl1"
_DTYPES = (
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("bfloat16", "float16", "float32", "float64", "complex64", "complex128"),
)


class WireError(Exception):
    """Bytes that are not a frame, or a value that a frame cannot hold."""


def pack_array(name: str, value: Any) -> Tuple[List[Any], bytes]:
    """The entry ``[name, dtype, shape]`` and the bytes of `value`, an array or a scalar.

    Raises
    ------
    WireError
        The dtype is none that can be sent.
    """
    array = np.asarray(value)
    dtype = array.dtype.name
    if dtype not in _DTYPES:
        raise WireError(f"{name}: arrays of dtype {array.dtype} cannot be sent")
    if array.dtype.byteorder == ">" or (array.dtype.byteorder == "=" and sys.byteorder == "big"):
        array = array.astype(array.dtype.newbyteorder("<"))
    return [name, dtype, list(array.shape)], array.tobytes()


def unpack_arrays(
    entries: Iterable[List[Any]], body: memoryview, offset: int, bfloat16: Any
) -> Tuple["Arrays", int]:
    """The arrays that `entries` list, read from `body` at `offset`, and the offset behind them.

    `bfloat16` is the two-byte dtype that such arrays get. Every array owns its memory, is aligned
    and may be written to: PyTorch warns of one that may not.
    """
    arrays = {}
    for name, dtype_name, shape in entries:
        if dtype_name not in _DTYPES:
            raise WireError(f"{name}: unknown dtype {dtype_name}")
        dtype = np.dtype("<u2" if dtype_name == "bfloat16" else dtype_name).newbyteorder("<")
        array = np.empty(shape, dtype)
        end = offset + array.nbytes
        if end > len(body):
            raise WireError(f"{name}: the body ends inside the array")
        if array.nbytes:
            array[...] = np.ndarray(shape, dtype, body, offset)
        if dtype_name == "bfloat16":
            array = array.view(bfloat16)
        arrays[name] = array
        offset = end
    return arrays, offset


def pack_frame(header: Mapping[str, Any], body: Iterable[bytes]) -> bytes:
    """One frame; `header` must be JSON, NaN included."""
    head = json.dumps(header, separators=(",", ":")).encode("ascii")
    tail = b"".join(body)
    return b"".join((_PREFIX.pack(_MAGIC, len(head), len(tail)), head, tail))


def frame_size(data: Any) -> Optional[int]:
    """The size of the frame that `data` begins with, None when its prefix is not complete.

    Raises
    ------
    WireError
        `data` is not the beginning of a frame.
    """
    if len(data) < _PREFIX.size:
        return None
    magic, head, tail = _PREFIX.unpack_from(data)
    if magic != _MAGIC:
        raise WireError(f"not a frame: {bytes(data[:16])!r}")
    return int(_PREFIX.size + head + tail)


def unpack_frame(frame: Any) -> Tuple[Dict[str, Any], memoryview]:
    """Header and body of one whole frame."""
    _, head, _ = _PREFIX.unpack_from(frame)
    view = memoryview(frame)[_PREFIX.size :]
    return json.loads(bytes(view[:head]).decode("ascii")), view[head:]


def _read_frame(stream: IO[bytes]) -> Optional[Tuple[Dict[str, Any], memoryview]]:
    """The next frame of `stream`, None where it ends: the supervisor is gone or wants no more."""
    prefix = stream.read(_PREFIX.size)
    size = frame_size(prefix)
    if size is None:
        return None
    rest = stream.read(size - _PREFIX.size)
    if len(rest) < size - _PREFIX.size:
        return None
    return unpack_frame(prefix + rest)


# -- programs ------------------------------------------------------------------------------------


class ContractError(Exception):
    """The program is not what an emitted program must be. Not the framework's fault."""


class Program(NamedTuple):
    """One program of a batch, as read from the wire."""

    kind: str
    code: bytes
    grad: bool
    inputs: "Arrays"
    params: "Arrays"
    number: int


# What building a program gives: its values and its gradients, not computed yet.
Built = Tuple[Callable[[], Any], Callable[[], Any]]


# Of a program that is made smaller, many trials differ in their inputs alone. No session of a
# runtime is kept so: what it does when it is freed is the doing of the program that made it.
@functools.lru_cache(maxsize=1)
def _compiled(text: str) -> Any:
    """The last module's code."""
    return compile(text, PROGRAM_FILE, "exec")


def _forget_nothing() -> None:
    """Most frameworks learn nothing of the programs that they have run."""


def _survives() -> bool:
    """On a processor what raises an exception leaves a framework as it was."""
    return True


# Called before each program. Dynamo knows a function by its place in a file and by its code: of one
# that is run again it would take what it has compiled for the names of the one before, and where
# its sizes are others now it would compile it for any size, which is another program than the one
# that a script of its own gets. After a program that has failed: whether others can still be run.
_MODE: Dict[str, Callable[[], Any]] = {"forget": _forget_nothing, "survives": _survives}


def _build_python(program: Program, options: Mapping[str, Any]) -> Built:  # noqa: ARG001
    """Execute the module's body; `run` and `gradients` are called later, each in its stage."""
    text = program.code.decode("utf-8")
    # A module and its lines that can be looked up, as if it were a file: frameworks that read the
    # source of what they compile must treat it as they would treat the user's script.
    module = types.ModuleType(PROGRAM_MODULE)
    sys.modules[PROGRAM_MODULE] = module
    linecache.cache[PROGRAM_FILE] = (len(text), None, text.splitlines(True), PROGRAM_FILE)
    space = module.__dict__
    _MODE["forget"]()
    exec(_compiled(text), space)  # noqa: S102 (this is what a worker is for)
    for name in ("INPUTS", "OUTPUTS", "run"):
        if name not in space:
            raise ContractError(f"the program does not define {name}")
    if program.grad and "gradients" not in space:
        raise ContractError("the program does not define gradients")

    def values() -> Any:
        outputs = _named(space["run"](program.inputs, program.params), "run")
        missing = [name for name in space["OUTPUTS"] if name not in outputs]
        if missing:
            raise ContractError("run() does not return {}".format(", ".join(missing)))
        return _mark_bfloat16(outputs, space)

    def gradients() -> Any:
        found = _named(space["gradients"](program.inputs, program.params), "gradients")
        return _mark_bfloat16(found, space)

    return values, gradients


def _named(value: Any, function: str) -> Dict[str, Any]:
    if not isinstance(value, dict) or not all(isinstance(name, str) for name in value):
        raise ContractError(f"{function}() does not return a dictionary of arrays")
    return value


class _Bits(NamedTuple):
    """A uint16 array whose elements are the bits of bfloat16 numbers."""

    bits: "Array"


def _mark_bfloat16(arrays: Dict[str, Any], space: Mapping[str, Any]) -> Dict[str, Any]:
    names = space.get("BFLOAT16", ())
    return {
        name: _Bits(value) if name in names and np.asarray(value).dtype == np.uint16 else value
        for name, value in arrays.items()
    }


_ORT_LEVELS = {
    "off": "ORT_DISABLE_ALL",
    "basic": "ORT_ENABLE_BASIC",
    "extended": "ORT_ENABLE_EXTENDED",
    "full": "ORT_ENABLE_ALL",
}
_ONNX_BFLOAT16 = 16  # TensorProto.DataType.BFLOAT16


def _build_onnx(program: Program, options: Mapping[str, Any]) -> Built:
    """Make an ONNX Runtime session; its outputs come in the model's order."""
    if program.grad:
        raise ContractError("a model file has no gradients")
    if options.get("framework") == "onnx":
        return _infer(program) if options.get("shapes") else _build_reference(program)
    if options.get("framework") == "openvino":
        return _build_openvino(program, options)
    ort = importlib.import_module("onnxruntime")
    settings = ort.SessionOptions()
    settings.intra_op_num_threads = settings.inter_op_num_threads = 1
    settings.log_severity_level = 4  # errors reach us as exceptions; standard error stays readable
    level = options.get("graph_optimization", "full")
    settings.graph_optimization_level = getattr(ort.GraphOptimizationLevel, _ORT_LEVELS[level])
    session = _session(ort, program.code, settings, bool(options.get("gpu")))

    def values() -> Any:
        given = dict(program.params, **program.inputs)
        wanted = session.get_inputs()
        missing = [node.name for node in wanted if node.name not in given]
        if missing:
            raise ContractError("no value for {}".format(", ".join(missing)))
        results = session.get_outputs()
        if any(node.type == "tensor(bfloat16)" for node in wanted + results):
            return _run_ort_values(ort, session, given)
        names = [node.name for node in results]
        feed = {node.name: given[node.name] for node in wanted}
        found = dict(zip(names, session.run(names, feed)))
        # None: what the runtime has lost of a result is for the one who judges to say
        found = {name: value for name, value in found.items() if value is not None}
        if options.get("shapes"):
            shapes = {node.name: node.shape for node in results}
            return {name: _of_shape(shapes[name], value) for name, value in found.items()}
        return found

    return values, dict


def _of_shape(inferred: Any, value: "Array") -> "Array":
    """Zeros of an inferred shape; what is not known of it is as in `value`."""
    if len(inferred) != value.ndim and not inferred:
        return np.zeros(value.shape, value.dtype)  # nothing is known
    own = tuple(value.shape) + (1,) * len(inferred)
    shape = [n if isinstance(n, int) else size for n, size in zip(inferred, own)]
    return np.zeros(shape, value.dtype)


def _infer(program: Program) -> Built:
    """The shapes that ONNX infers: with the sizes of inputs, and with a symbol for each of them."""
    onnx = importlib.import_module("onnx")
    model = onnx.load_from_string(program.code)
    right = {
        port.name: [size.dim_value for size in port.type.tensor_type.shape.dim]
        for port in model.graph.output
    }

    def dims(port: Any) -> Any:
        kind = port.type.tensor_type
        if not kind.HasField("shape"):
            return None
        return [n.dim_value if n.HasField("dim_value") else None for n in kind.shape.dim]

    def values() -> Any:
        for port in model.graph.output:
            port.type.tensor_type.ClearField("shape")
        open_ = onnx.ModelProto()
        open_.CopyFrom(model)
        for port in open_.graph.input:
            for axis, size in enumerate(port.type.tensor_type.shape.dim):
                size.dim_param = f"{port.name}_{axis}"
        found: Dict[str, List[int]] = {}
        for asked in (model, open_):
            inferred = onnx.shape_inference.infer_shapes(asked, strict_mode=True, data_prop=True)
            for port in inferred.graph.output:
                known, shape = dims(port), found.get(port.name, right[port.name])
                if known is not None and shape == right[port.name]:
                    own = shape + [1] * len(known)
                    shape = [o if n is None else n for n, o in zip(known, own)]
                found[port.name] = shape
        types = {port.name: port.type.tensor_type.elem_type for port in model.graph.output}
        return {name: _zeros(onnx, shape, types[name]) for name, shape in found.items()}

    return values, dict


def _zeros(onnx: Any, shape: List[int], kind: int) -> Any:
    if kind == _ONNX_BFLOAT16:
        return _Bits(np.zeros(shape, np.uint16))
    return np.zeros(shape, onnx.helper.tensor_dtype_to_np_dtype(kind))


def _build_reference(program: Program) -> Built:
    """Make ONNX's own evaluator, in NumPy."""
    onnx = importlib.import_module("onnx")
    reference = importlib.import_module("onnx.reference")
    bfloat16 = importlib.import_module("ml_dtypes").bfloat16
    model = onnx.load_from_string(program.code)
    kinds = {value.name: value.type.tensor_type.elem_type for value in model.graph.input}
    evaluator = reference.ReferenceEvaluator(model)

    def values() -> Any:
        given = dict(program.params, **program.inputs)
        missing = [name for name in kinds if name not in given]
        if missing:
            raise ContractError("no value for {}".format(", ".join(missing)))
        feed = {
            name: given[name].view(bfloat16) if kind == _ONNX_BFLOAT16 else given[name]
            for name, kind in kinds.items()
        }
        return dict(zip(evaluator.output_names, evaluator.run(None, feed)))

    return values, dict


def _build_openvino(program: Program, options: Mapping[str, Any]) -> Built:
    """Compile a model for the processor; bfloat16 is handed to it as its bits."""
    openvino = importlib.import_module("openvino")
    core = openvino.Core()
    model = core.read_model(program.code)
    # With one thread it says nothing of what fails while a model runs whose sizes it does not know.
    settings = {"INFERENCE_NUM_THREADS": 2 if model.is_dynamic() else 1}
    if "precision" in options:
        settings["INFERENCE_PRECISION_HINT"] = options["precision"]
    compiled = core.compile_model(model, "CPU", settings)

    def values() -> Any:
        given = dict(program.params, **program.inputs)
        names = [port.get_node().get_friendly_name() for port in compiled.inputs]
        # An input that is a result as well has the name of the result: it is known by its place.
        others = iter([name for name in given if name not in names])
        feed = {}
        for port, name in zip(compiled.inputs, names):
            name, kind = name if name in given else next(others, name), port.element_type
            if name not in given:
                raise ContractError(f"no value for {name}")
            feed[port] = given[name]
            if kind == openvino.Type.bf16:
                feed[port] = openvino.Tensor(given[name], openvino.Shape(given[name].shape), kind)
        found = {}
        for port, value in compiled(feed).items():
            bits = port.element_type == openvino.Type.bf16
            # A result that is an input as well has a name of its own; its node keeps the other.
            node = port.get_node().get_friendly_name().partition("/sink_port_")[0]
            for name in {node, *port.get_names()}:
                found[name] = _Bits(value.view(np.uint16)) if bits else value
        return found

    return values, dict


def _session(ort: Any, model: bytes, settings: Any, gpu: bool) -> Any:
    """A session, where asked on a GPU: the runtime falls back on the processor without an error."""
    providers = ["CUDAExecutionProvider"] * gpu + ["CPUExecutionProvider"]
    session = ort.InferenceSession(model, settings, providers=providers)
    if gpu and session.get_providers()[0] != providers[0]:
        raise RuntimeError("onnxruntime cannot load its CUDA provider")
    return session


def _run_ort_values(ort: Any, session: Any, given: Mapping[str, Any]) -> Dict[str, Any]:
    """Run a session that takes or gives bfloat16, for which its NumPy interface has no dtype."""
    feed = {}
    for node in session.get_inputs():
        if node.type == "tensor(bfloat16)":
            make = functools.partial(
                ort.OrtValue.ortvalue_from_numpy_with_onnx_type, onnx_element_type=_ONNX_BFLOAT16
            )
        else:
            make = ort.OrtValue.ortvalue_from_numpy
        feed[node.name] = make(given[node.name])
    names = [node.name for node in session.get_outputs()]
    outputs: Dict[str, Any] = {}
    for name, value in zip(names, session.run_with_ort_values(names, feed)):
        if value.data_type() == "tensor(bfloat16)":
            shape = tuple(value.shape())
            size = 2 * int(np.prod(shape, dtype=np.int64))
            data = ctypes.string_at(value.data_ptr(), size) if size else b""
            outputs[name] = _Bits(np.frombuffer(data, "<u2").reshape(shape))
        else:
            outputs[name] = value.numpy()
    return outputs


_KINDS = {"python": _build_python, "onnx": _build_onnx}


def execute(program: Program, options: Mapping[str, Any]) -> Tuple[Dict[str, Any], List[bytes]]:
    """Run one program; header and body of its answer. No exception of the program's leaves it."""
    answer: Dict[str, Any] = {"status": "ok", "error": "", "detail": {}}
    body: List[bytes] = []
    start = time.perf_counter()
    stage = "build"
    try:
        if program.kind not in _KINDS:
            raise ContractError(f"unknown kind of program: {program.kind}")
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            values, gradients = _KINDS[program.kind](program, options)
            stage = "run"
            answer["outputs"] = _pack_named(values(), body)
            if program.grad:
                stage = "gradient"
                answer["gradients"] = _pack_named(gradients(), body)
        said = [one for one in warned if one.category in (UserWarning, RuntimeWarning)]
        if said:
            answer["detail"] = {"warned": str(said[0].message)[:MESSAGE_LIMIT]}
    except MemoryError as error:
        answer.update(_failure(error, stage), status="memory")
    except (ContractError, WireError) as error:
        answer.update(_failure(error, "contract"), status="refused")
    except BaseException as error:  # noqa: BLE001 (SystemExit of a program is its result too)
        answer.update(_failure(error, stage), status="refused")
    finally:
        sys.modules.pop(PROGRAM_MODULE, None)
        linecache.cache.pop(PROGRAM_FILE, None)
    answer["seconds"] = time.perf_counter() - start
    return answer, body


def _pack_named(arrays: Mapping[str, Any], body: List[bytes]) -> List[List[Any]]:
    entries, chunks = [], []
    for name, value in arrays.items():
        entry, data = pack_array(name, value.bits if isinstance(value, _Bits) else value)
        if isinstance(value, _Bits):
            entry[1] = "bfloat16"
        entries.append(entry)
        chunks.append(data)
    body.extend(chunks)  # all of them or none: the header must not miss what the body holds
    return entries


def _failure(error: BaseException, stage: str) -> Dict[str, Any]:
    message = str(error)
    if not any(map(str.isalpha, message)):  # "", or the 0 of a KeyError
        message = f"{type(error).__name__}: {message}".rstrip(": ")
    if len(message) > MESSAGE_LIMIT:
        quarter = MESSAGE_LIMIT // 4
        message = f"{message[: 3 * quarter]} [...] {message[-quarter:]}"
    lines = [
        frame.lineno
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename == PROGRAM_FILE
    ]
    if isinstance(error, SyntaxError) and error.filename == PROGRAM_FILE:
        lines.append(error.lineno)
    detail = {"type": type(error).__name__, "stage": stage, "line": lines[-1] if lines else None}
    return {"error": message, "detail": detail}


# -- frameworks ----------------------------------------------------------------------------------


def _setup_torch(torch: Any) -> None:
    torch.set_num_threads(1)
    torch.set_num_interop_threads(1)


def _setup_tensorflow(tf: Any) -> None:
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    tf.get_logger().setLevel("ERROR")


def _setup_keras(keras: Any) -> None:
    """Its backend is known by now: the one that the environment names."""
    setups = {"tensorflow": _setup_tensorflow, "torch": _setup_torch}
    backend = keras.backend.backend()
    if backend in setups:
        setups[backend](importlib.import_module(backend))


def _setup_nothing(module: Any) -> None:
    """Nothing to set: this framework's threads are set per session, or by the environment."""


def _setup_aot(torch: Any) -> None:
    """What compiles, but for writing kernels."""
    _setup_compile(torch, backend="aot_eager_decomp_partition")


def _setup_compile(torch: Any, device: str = "cpu", **options: Any) -> None:
    """The first compilation takes long, and tells whether there is a compiler that works."""

    def double(x: Any) -> Any:
        return x + x

    torch.compile(double, **options)(torch.ones(3, device=device))

    def forget() -> None:
        _compiled.cache_clear()
        torch._dynamo.reset()

    _MODE["forget"] = forget


def _setup_gpu(framework: Any) -> None:
    """A framework that was not built for the GPU would compute on the processor instead."""
    name = framework.__name__
    if name == "torch":
        there = framework.cuda.is_available()
    elif name == "tensorflow":
        there = framework.config.list_physical_devices("GPU")
    elif name == "jax":
        there = framework.devices()[0].platform == "gpu"
    else:
        there = _has_cuda(framework)
    if not there:
        raise RuntimeError(f"{name} finds no GPU")
    if name in _ON_GPU:
        _MODE["survives"] = functools.partial(_computes, framework, _ON_GPU[name])


# y = -x of one f32, as a model file: 60 bytes are less than to ask for the package `onnx`.
_NEGATED = (
    b'\x08\x07:2\n\x0b\n\x01x\x12\x01y"\x03Neg\x12\x01gZ\x0f\n\x01x\x12\n\n\x08\x08\x01\x12\x04'
    b"\n\x02\x08\x01b\x0f\n\x01y\x12\n\n\x08\x08\x01\x12\x04\n\x02\x08\x01B\x04\n\x00\x10\r"
)


def _negates(ort: Any) -> Any:
    settings = ort.SessionOptions()
    settings.log_severity_level = 4
    return _session(ort, _NEGATED, settings, True).run(None, {"x": np.ones(1, np.float32)})


def _has_cuda(ort: Any) -> bool:
    """Whether the provider is built in and finds its libraries, those of pip's packages too."""
    if hasattr(ort, "preload_dlls"):  # since 1.21
        ort.preload_dlls()
    return "CUDAExecutionProvider" in ort.get_available_providers() and _computes(ort, _negates)


# A kernel that ends badly takes the context of its process with it: all that follows fails. So do
# those that find an index out of its range, which have no other way to say so.
_ASSERTED = "device-side assert"
_ON_GPU: Dict[str, Callable[[Any], Any]] = {
    "torch": lambda torch: torch.ones(1, device="cuda").add(1).item(),
    "tensorflow": lambda tf: tf.add(tf.ones(1), 1).numpy(),
    "jax": lambda jax: np.asarray(jax.device_put(np.ones(1, np.float32)) + 1),
    "onnxruntime": _negates,
}


def _setup_triton(torch: Any) -> None:
    _setup_gpu(torch)
    _setup_compile(torch, "cuda")


def _with_gpu(hello: Mapping[str, Any]) -> Mapping[str, Any]:
    """What a framework that is imported already says of itself when it is to compute on a GPU."""
    try:
        _setup_gpu(sys.modules[hello["framework"]])
    except Exception as error:  # noqa: BLE001 (as of an import)
        return _unusable(error)
    return hello


def _computes(framework: Any, small: Callable[[Any], Any]) -> bool:
    try:
        small(framework)
    except Exception:  # noqa: BLE001 (whatever it says)
        return False
    return True


_MODES: Dict[str, Callable[[Any], None]] = {
    "aot": _setup_aot,
    "compile": _setup_compile,
    "cuda": _setup_gpu,
    "gpu": _setup_gpu,
    "tf32": _setup_gpu,
    "triton": _setup_triton,
}
# A target's name up to the colon, the module that it needs, and what to set once at the start.
FRAMEWORKS = {
    "numpy": ("numpy", _setup_nothing),
    "torch": ("torch", _setup_torch),
    "tf": ("tensorflow", _setup_tensorflow),
    "jax": ("jax", _setup_nothing),
    "keras": ("keras", _setup_keras),
    "mxnet": ("mxnet", _setup_nothing),
    "onnxruntime": ("onnxruntime", _setup_nothing),
    "onnx-reference": ("onnx", _setup_nothing),
    "onnx": ("onnx", _setup_nothing),
    "openvino": ("openvino", _setup_nothing),
    "tflite": ("tensorflow", _setup_tensorflow),
}


def _hello(target: str) -> Dict[str, Any]:
    """Import the target's framework and say what it is, or why it cannot be used."""
    family, _, mode = target.partition(":")
    if family not in FRAMEWORKS:
        known = ", ".join(sorted(FRAMEWORKS))
        return _unusable(LookupError(f"no target {family}; there are {known}"))
    name, setup = FRAMEWORKS[family]
    # What old frameworks look for in its old place.
    collections.Iterable = collections.abc.Iterable  # type: ignore[attr-defined]
    try:
        framework = importlib.import_module(name)
        setup(framework)
        if mode in _MODES:
            _MODES[mode](framework)
    except Exception as error:  # noqa: BLE001 (a broken installation raises anything)
        return _unusable(error)
    return {
        "hello": PROTOCOL,
        "framework": name,
        "version": str(getattr(framework, "__version__", "unknown")),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "pid": os.getpid(),
    }


def _unusable(error: BaseException) -> Dict[str, Any]:
    return {"hello": PROTOCOL, "error": type(error).__name__, "message": str(error)}


# -- process -------------------------------------------------------------------------------------


def _take_pipes() -> Tuple[IO[bytes], IO[bytes]]:
    """The supervisor's two pipes under private descriptors; what is printed goes to stderr."""
    incoming, outgoing = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    _print_to_errors()
    return incoming, outgoing


def _print_to_errors() -> None:
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    os.dup2(2, 1)
    sys.stdout = sys.stderr  # not block-buffered: a crash must not lose what was printed before it


def _restrain() -> None:
    """No core files, no life without the supervisor, the first to go when memory runs out."""
    _tell_where()
    if sys.platform.startswith("linux"):
        import resource  # not on every platform

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        _die_with_parent()
        with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
            file.write("1000")  # may be forbidden in a container; the supervisor watches as well


def _tell_where() -> None:
    faulthandler.enable(2)
    if hasattr(faulthandler, "register"):
        # The supervisor asks for a stack before it ends a program that hangs.
        faulthandler.register(signal.SIGUSR1, 2)


def _die_with_parent() -> None:
    if sys.platform.startswith("linux"):
        set_parent_death_signal = 1
        ctypes.CDLL(None).prctl(set_parent_death_signal, signal.SIGKILL)


def resident_bytes(pid: str = "self") -> int:
    """Resident memory of a process; 0 where it is gone or the system does not tell."""
    try:
        with open(f"/proc/{pid}/statm", "rb") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError):
        return 0


def processor_seconds(pid: str) -> float:
    """What a process has had of the processor; 0 where it is gone or the system does not tell."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    except (OSError, IndexError, ValueError):
        return 0.0


_BUSIEST = 8  # times its limit that a program may take on a machine that has no time for it


def starved(pid: str, worked: float, seconds: float, beyond: float) -> bool:
    """Whether a process is late because the machine is busy, not because it hangs.

    worked: its seconds of the processor since it was last heard of; beyond: those since `seconds`
    have passed. Then one of its threads waits for the processor or the disk.
    """
    if worked >= seconds or beyond >= (_BUSIEST - 1) * seconds:
        return False
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/stat", "rb") as file:
                if file.read().rpartition(b")")[2].split()[0] in (b"R", b"D"):
                    return True
    except (OSError, IndexError):
        return False  # it is gone, or the system does not tell
    return False


def _serve(incoming: IO[bytes], outgoing: IO[bytes], options: Mapping[str, Any]) -> None:
    """Answer batches until the supervisor closes its end or this process should be replaced."""
    done = 0
    programs_limit = options.get("retire_programs", 20000)
    memory_limit = resident_bytes() + options.get("retire_growth", 2 << 30)
    while True:
        request = _read_frame(incoming)
        if request is None:
            return
        for program in _requested(*request):
            answer, data = execute(program, options)
            done += 1
            lost = answer["status"] == "refused" and not _MODE["survives"]()
            if lost and _ASSERTED not in answer["error"]:
                answer["status"] = "crash"
            worn = done >= programs_limit or resident_bytes() > memory_limit
            answer["retire"] = lost or worn
            answer["number"] = program.number
            outgoing.write(pack_frame(answer, data))
            outgoing.flush()
            if answer["retire"]:
                return


def _requested(header: Mapping[str, Any], body: memoryview) -> Iterator[Program]:
    """The programs of a batch."""
    offset = 0
    for item in header["programs"]:
        code = bytes(body[offset : offset + item["size"]])
        offset += item["size"]
        inputs, offset = unpack_arrays(item["inputs"], body, offset, np.uint16)
        params, offset = unpack_arrays(item["params"], body, offset, np.uint16)
        yield Program(item["kind"], code, item["grad"], inputs, params, item["number"])


# -- processes that are forked for a batch -------------------------------------------------------

_TICK = 0.02  # seconds between two looks at a process
_GRACE = 5.0  # seconds that a process whose answers have ended has to end itself
_STACK_SECONDS = 0.2  # that a process which hangs has to print where


def _serve_apart(incoming: IO[bytes], outgoing: IO[bytes], options: Mapping[str, Any]) -> None:
    """Answer batches from forked processes until the supervisor closes its end."""
    while True:
        request = _read_frame(incoming)
        if request is None:
            return
        programs = list(_requested(*request))
        while programs:
            answered, lost = _run_forked(programs, (incoming, outgoing), options)
            if lost is not None:
                number = programs[answered].number
                outgoing.write(pack_frame(dict(lost, retire=False, number=number), ()))
                outgoing.flush()
                answered += 1
            programs = programs[answered:]


def _run_forked(
    programs: List[Program], streams: Tuple[IO[bytes], IO[bytes]], options: Mapping[str, Any]
) -> Tuple[int, Optional[Dict[str, Any]]]:
    """Run programs in one forked process and pass its answers on.

    Gives how many it answered, and the answer for the one that it was lost at, if it was.
    """
    answers, writing = os.pipe()
    child = os.fork()
    if not child:
        with contextlib.suppress(BaseException):  # whatever it is, the parent's work is not ours
            os.setpgid(0, 0)
            _die_with_parent()
            for number in (answers, *(stream.fileno() for stream in streams)):
                os.close(number)  # out of reach of a program
            with os.fdopen(writing, "wb") as own:
                for program in programs:
                    answer, data = execute(program, options)
                    own.write(pack_frame(dict(answer, retire=False, number=program.number), data))
                    own.flush()
        os._exit(0)
    os.close(writing)
    start = time.perf_counter()
    answered, event = 0, "exit"
    with os.fdopen(answers, "rb", 0) as pipe:
        for event, frame in _heard(pipe, child, options):
            if event == "frame":
                streams[1].write(frame)
                streams[1].flush()
                answered += 1
                start = time.perf_counter()
            if answered == len(programs):
                break
    code = _end_forked(child, event)
    if answered == len(programs):
        return answered, None
    status = event if event in ("timeout", "memory") else "crash"
    error, detail = cause_of_end(event, code, options["seconds"], options["memory"])
    seconds = time.perf_counter() - start
    return answered, {"status": status, "error": error, "detail": detail, "seconds": seconds}


def _heard(pipe: IO[bytes], child: int, options: Mapping[str, Any]) -> Iterator[Tuple[str, bytes]]:
    """What comes from a forked process: frames, and last the event that ends its use."""
    inbox = bytearray()
    pid, limit = str(child), options["seconds"]
    quiet_since, worked_before = time.perf_counter(), 0.0
    while True:
        if select.select([pipe], [], [], _TICK)[0]:
            data = pipe.read(1 << 20)
            if not data:
                break
            inbox += data
            try:
                size = frame_size(inbox)
                while size is not None and size <= len(inbox):
                    yield "frame", bytes(inbox[:size])
                    del inbox[:size]
                    quiet_since, worked_before = time.perf_counter(), processor_seconds(pid)
                    size = frame_size(inbox)
            except WireError:
                yield "garbage", b""
                return
            continue
        late = time.perf_counter() - quiet_since - limit
        if late > 0 and not starved(pid, processor_seconds(pid) - worked_before, limit, late):
            yield "timeout", b""
            return
        if resident_bytes(pid) > options["memory"]:
            yield "memory", b""
            return
        if os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
            break  # and a process of its own holds the pipe
    yield "exit", b""


def _end_forked(child: int, event: str) -> int:
    """End a forked process and those that it started; its exit code, negative for a signal."""
    if event == "timeout":
        os.kill(child, signal.SIGUSR1)
        time.sleep(_STACK_SECONDS)
    if event == "exit":  # its pipe is closed: it is about to end, and how is what is asked
        until = time.perf_counter() + _GRACE
        while (
            os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None
            and time.perf_counter() < until
        ):
            time.sleep(_TICK)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child, signal.SIGKILL)
    status = os.waitpid(child, 0)[1]
    return -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


def cause_of_end(event: str, code: int, seconds: float, memory: int) -> Tuple[str, Dict[str, Any]]:
    """Why a process was lost in one line, and its signal or exit code if it ended by itself."""
    if event == "exit" and code < 0:
        try:
            name = signal.Signals(-code).name
        except ValueError:  # real-time signals have no names of their own
            name = f"signal {-code}"
        return f"killed by {name}", {"signal": name}
    if event == "exit":
        return f"exited with status {code}", {"exit_code": code}
    causes = {
        "timeout": f"no answer within {seconds:g} s",
        "memory": f"resident memory passed {memory / (1 << 20):.0f} MiB",
        "garbage": "wrote something else than answers to its private pipe",
        "stray": "answered for the second time, as a process that a program forked does",
        "closed": "closed",
    }
    return causes[event], {}


def main(arguments: List[str]) -> None:
    """``TARGET [OPTIONS]``, the latter a JSON object (keys: see `irlang.lower.pool.Target`)."""
    options = json.loads(arguments[1]) if len(arguments) > 1 else {}
    if "listen" in options:
        _be_template(arguments[0], options)
    incoming, outgoing = _take_pipes()
    _restrain()
    _work(incoming, outgoing, _hello(arguments[0]), options)


def _work(
    incoming: IO[bytes], outgoing: IO[bytes], hello: Mapping[str, Any], options: Mapping[str, Any]
) -> None:
    """All that a worker does; it does not return."""
    outgoing.write(pack_frame(hello, ()))
    outgoing.flush()
    if "error" not in hello:
        serve = _serve_apart if options.get("apart") else _serve
        serve(incoming, outgoing, dict(options, framework=hello["framework"]))
    # Frameworks are not taken down: it takes seconds, some crash, and there is nothing to save.
    sys.stderr.flush()
    os._exit(0)


# -- a process that forks workers ----------------------------------------------------------------

_REQUEST = 1 << 16  # bytes
_DESCRIPTORS = 3  # that come with a request: what the worker reads, answers to, and prints to


def _be_template(target: str, options: Mapping[str, Any]) -> None:
    """Import the framework once, and fork a worker for each connection; it does not return.

    A connection is a worker's life. A request is the worker's options, with its three pipes; the
    answers are ``{"pid": ...}`` and, when it has ended, ``{"code": ...}``. Then ``stack`` makes the
    worker print where it is; ``end``, or the end of the connection, ends it and what it has
    started. The end of the standard input ends the template with all of them.
    """
    signal.alarm(int(options["start_seconds"]) + 1)  # nobody watches a template's import
    owner = os.dup(0)
    _print_to_errors()
    hello = _hello(target)
    signal.alarm(0)
    if "error" in hello or len(os.listdir("/proc/self/task")) > 1:
        os._exit(1)
    listening = socket.socket(fileno=options["listen"])
    awake, wakes = os.pipe()
    os.set_blocking(wakes, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wakes)
    gc.collect()
    if hasattr(gc, "freeze"):
        gc.freeze()  # pages of what is never freed stay shared
    children: Dict[socket.socket, int] = {}
    while True:
        watched: List[Any] = [owner, awake, listening, *children]
        heard = select.select(watched, [], [])[0]
        if owner in heard:
            os._exit(0)  # those that were forked end with it
        if awake in heard:
            os.read(awake, _REQUEST)
        if listening in heard:
            connection = listening.accept()[0]
            pid = _fork_worker(connection, (owner, awake, wakes), (listening, *children), hello)
            if pid:
                children[connection] = pid
        for connection in [one for one in heard if one in children]:
            with contextlib.suppress(OSError):
                said = connection.recv(_REQUEST)
                os.kill(
                    children[connection], signal.SIGUSR1 if said == b"stack" else signal.SIGKILL
                )
        for connection, pid in list(children.items()):
            if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
                code = _end_forked(pid, "")
                with contextlib.suppress(OSError):
                    connection.send(json.dumps({"code": code}).encode("ascii"))
                connection.close()
                del children[connection]


def _fork_worker(
    connection: socket.socket,
    descriptors: Iterable[int],
    sockets: Iterable[socket.socket],
    hello: Mapping[str, Any],
) -> int:
    """Fork the worker of a connection; its pid, or 0 where nothing sensible was asked for.

    descriptors, sockets: the template's own, which the worker must not hold.
    """
    space = socket.CMSG_SPACE(_DESCRIPTORS * struct.calcsize("i"))
    try:
        request, sent, _, _ = connection.recvmsg(_REQUEST, space)
        pipes = struct.unpack(f"{_DESCRIPTORS}i", sent[0][2])
        options = json.loads(request.decode("ascii"))
    except (OSError, IndexError, ValueError, struct.error):
        connection.close()
        return 0
    template = os.getpid()
    pid = os.fork()
    if pid:
        for number in pipes:
            os.close(number)
        with contextlib.suppress(OSError):
            connection.send(json.dumps({"pid": pid}).encode("ascii"))
        return pid
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.setsid()
        for number in descriptors:
            os.close(number)
        for one in (*sockets, connection):
            one.close()
        os.dup2(pipes[2], 2)
        os.dup2(2, 1)
        os.close(pipes[2])
        _restrain()
        if os.getppid() == template:  # else it has ended before this one could end with it
            for number in pipes[:2]:
                os.set_inheritable(number, False)
            incoming, outgoing = os.fdopen(pipes[0], "rb"), os.fdopen(pipes[1], "wb")
            if options.get("gpu"):  # its driver would not survive the fork
                hello = _with_gpu(hello)
            _work(incoming, outgoing, dict(hello, pid=os.getpid()), options)
    finally:
        os._exit(1)


if __name__ == "__main__":
    main(sys.argv[1:])
