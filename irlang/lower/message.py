"""What goes to a worker and what comes back: programs and results, and how they are packed."""

from __future__ import annotations

import dataclasses
import re
import struct
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias, get_args

import ml_dtypes
import numpy as np

from irlang.lower import worker as wire

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
Status: TypeAlias = Literal["ok", "refused", "crash", "timeout", "memory"]


@dataclasses.dataclass(frozen=True)
class Program:
    """One emitted program, as `irlang.lower.worker` defines its kinds, and the values it is given.

    Arrays may have any dtype of the language, ``ml_dtypes.bfloat16`` included. With `grad`, its
    gradients are computed after its outputs.
    """

    kind: Literal["python", "onnx"]
    code: bytes | str
    inputs: Mapping[str, Array] = dataclasses.field(default_factory=dict)
    params: Mapping[str, Array] = dataclasses.field(default_factory=dict)
    grad: bool = False


@dataclasses.dataclass(frozen=True)
class Result:
    """What became of one program.

    `status` is ok; refused (the framework raised: `detail` has ``type``, ``stage`` and ``line``
    of the program; stage ``contract`` means that the emitted program itself is at fault); crash
    (``signal`` or ``exit_code``); timeout; or memory. Where the process was lost, `detail` has its
    last ``output``, which may be earlier programs' too; ``programs_before``, how many it had run,
    as a crash may be an earlier program's doing; and ``peak``, its most resident bytes. A memory
    result of an allocation that merely failed has the details of a refusal. `error` is one
    message, empty when ok; `detail` has then, if anything, what the framework ``warned`` of.
    Outputs are kept when only the gradients failed. bfloat16 arrays have dtype
    ``ml_dtypes.bfloat16``.
    """

    status: Status
    outputs: dict[str, Array]
    gradients: dict[str, Array]
    error: str
    detail: dict[str, Any]
    seconds: float


@dataclasses.dataclass(frozen=True)
class Hello:
    """What a started worker says of itself."""

    framework: str
    version: str
    python: str
    numpy: str
    pid: int


# What reading a header or an array raises where the bytes are not what a worker writes.
_NOT_READ = (
    AttributeError, LookupError, MemoryError, OverflowError, TypeError, ValueError, struct.error,
)  # fmt: skip

# Colours, what moves a terminal's cursor, and characters that turn a line around.
_CONTROL = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|.)?"
    r"|[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)

Packed: TypeAlias = tuple[dict[str, Any], list[bytes]]


def plain(text: str) -> str:
    """What a framework says or prints without what is not there to be read: it is shown on
    terminals and written into reports.
    """
    return _CONTROL.sub("", text)


def pack(program: Program) -> Packed:
    """A program as a header and the bytes that follow it."""
    code = program.code.encode("utf-8") if isinstance(program.code, str) else program.code
    item: dict[str, Any] = {"kind": program.kind, "size": len(code), "grad": program.grad}
    body = [code]
    for part in ("inputs", "params"):
        packed = [wire.pack_array(name, value) for name, value in getattr(program, part).items()]
        item[part] = [entry for entry, _ in packed]
        body.extend(data for _, data in packed)
    return item, body


def batch(programs: Sequence[Packed], first: int = 0) -> bytes:
    """Programs as one frame. first: the number of the first; answers tell that of theirs."""
    items = [{**item, "number": first + place} for place, (item, _) in enumerate(programs)]
    header = {"programs": items}
    return wire.pack_frame(header, [data for _, body in programs for data in body])


def read_answer(frame: bytearray) -> tuple[dict[str, Any], Result]:
    """The header of an answer, and the result that it is.

    Raises
    ------
    irlang.lower.worker.WireError
        The frame is no answer: what a framework writes by chance, or what is cut short.
    """
    try:
        answer, body = wire.unpack_frame(frame)
        bfloat16 = ml_dtypes.bfloat16
        outputs, offset = wire.unpack_arrays(answer.get("outputs", ()), body, 0, bfloat16)
        gradients, _ = wire.unpack_arrays(answer.get("gradients", ()), body, offset, bfloat16)
        status, error, seconds = answer["status"], answer["error"], float(answer["seconds"])
        if status not in get_args(Status) or not isinstance(error, str):
            raise wire.WireError(f"no status of a program: {status!r}")
        detail = dict(answer["detail"])
        answer["retire"] = bool(answer["retire"])
    except _NOT_READ as cause:
        raise wire.WireError(f"no answer: {type(cause).__name__}: {cause}") from cause
    return answer, Result(status, outputs, gradients, plain(error), detail, seconds)


def read_hello(frame: bytearray) -> dict[str, Any]:
    """What a worker says of itself: the fields of `Hello`, or `error` and `message`.

    Raises
    ------
    irlang.lower.worker.WireError
        The frame says neither.
    """
    try:
        hello, _ = wire.unpack_frame(frame)
        wanted = ["error", "message"] if "error" in hello else list(Hello.__dataclass_fields__)
        return {name: hello[name] for name in wanted}
    except _NOT_READ as cause:
        raise wire.WireError(f"no greeting: {type(cause).__name__}: {cause}") from cause
