"""Files and arguments meant to do harm: a diagnostic and exit status 1 or 2, and no traceback.

Every text is given to `check`, `fmt` and `run`. Whatever memory a text asks for must be refused
before it is taken, which a limit on the process's address space would show as a traceback.
"""
# ruff: noqa: E501 -- a text a line

from __future__ import annotations

import io
import json
import os
import pickle
import resource
import shlex
import signal
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import irlang
from irlang.cli import status
from irlang.diagnostics import InvalidInput
from irlang.interp.values import load_npy

SECONDS = 20
MEMORY = 6 * 2**30  # more than any of these needs, less than what the greedy ones ask for

MODEL = "model m(x: f32[N, 4] in [0, 1]) -> y: f32[N, 4] {{ {} }}\n"


def model(body: str, before: str = "") -> str:
    return before + "\n" + MODEL.format(body)


def operator(body: str, attrs: str = "") -> str:
    definition = f"op f[T: float](x: T[N, M]{attrs}) -> y: T[N, M] {{ {body} }}\n"
    return definition + model("y = f(x)")


def chain(count: int, first: str, step: str) -> str:
    """`count` lets or statements, each made of the one before."""
    lines = [first, *(step.format(i=i, j=i - 1) for i in range(1, count))]
    return "\n".join(lines)


BLOCKS = "\n".join(
    f"block b{i}(x: f32[N, M]) -> y: f32[N, M] {{ a = b{i + 1}(x) y = b{i + 1}(a) }}"
    for i in range(35)
)
DEEP_BLOCKS = "\n".join(
    f"block b{i}(x: f32[N, M]) -> y: f32[N, M] {{ y = b{i + 1}(x) }}" for i in range(3000)
)
OPS = "\n".join(
    f"op o{i}[T: float](x: T[N, M]) -> y: T[N, M] {{ a = o{i + 1}(x) b = o{i + 1}(a) y[i, j] = b[i, j] }}"
    for i in range(28)
)

# What is refused by the checker, whoever asks for it.
INVALID = {
    "huge bytes beside nothing": """nnir 1

model m(x: f32[0, 1, 1, 1]) -> y: f32[0, 4611686014132420609, 1] {
  y = im2col(x; window = 2147483647, after = 2147483646)
}
""",
    "a range too long": model("let n = range(1000000000) y = relu(x)"),
    "a range beyond any list": model("y = slice(x; axes = range(99999999999999999999))"),
    "dunder operator": model("y = __class__(x)"),
    "dunder operand": model("y = relu(__builtins__)"),
    "dunder attribute": model("y = relu(x; __class__ = 1)"),
    "dunder type": "model m(x: __import__[2]) -> y: f32[2] { y = relu(x) }",
    "dunder function": operator("y[n, m] = __import__(x[n, m])"),
    "dunder size": "model m(x: f32[__class__ + 1]) -> y: f32[2] { y = relu(x) }",
    "huge size": f"model m(x: f32[{10**30}]) -> y: f32[{10**30}] {{ y = relu(x) }}",
    "huge product": "model m(x: f32[4294967296, 4294967296]) -> y: f32[1] { y = relu(x) }",
    "huge product beside nothing": "model m(x: f32[0, 4294967296, 4294967296]) -> y: f32[0] { y = relu(x) }",
    "huge result": "model m(x: f32[4]) -> y: f32[4] { y = broadcast_to(x; shape = [4294967296, 1073741824, 4]) }",
    "many axes": f"model m(x: f32[{', '.join('1' * 80)}]) -> y: f32[1] {{ y = relu(x) }}",
    "axes upon axes": model(chain(70, "h0 = x", "h{i} = expand_dims(h{j}; axes = [0])") + " y = x"),
    "negative size": "model m(x: f32[-3]) -> y: f32[3] { y = relu(x) }",
    "fraction of a size": "model m(x: f32[3 / 2]) -> y: f32[3] { y = relu(x) }",
    "text as a size": 'model m(x: f32["a"]) -> y: f32[3] { y = relu(x) }',
    "size by zero": model("let n = 1 // 0 y = relu(x)"),
    "remainder by zero": model("let n = 4 % (2 - 2) y = relu(x)"),
    "attribute by zero": model("y = leaky_relu(x; alpha = 1 / 0)"),
    "division by zero in a definition": operator("let k = N // (M - M) y[n, m] = x[n, m] * k"),
    "huge power": model("let n = pow(10, pow(10, pow(10, 10))) param w: f32[n] y = relu(x)"),
    "squares of squares": model(chain(60, "let a0 = 10", "let a{i} = a{j} * a{j}") + " param w: f32[a59] y = x"),
    "squares of fractions": model(chain(60, "let a0 = 10 / 3", "let a{i} = a{j} * a{j}") + " param w: f32[a59] y = x"),
    "doubled lists": model(chain(60, "let a0 = [1, 2]", "let a{i} = join(a{j}, a{j})") + " param w: f32[2] = a59 y = x"),
    "long range": model("let a = range(100000000000) y = x"),
    "repeated text": model('let a = "abc" * 100000000000 y = x'),
    "nested ranges": model("let a = sum(i < 4000, j < 4000) 1 y = x"),
    "sums of sums": model("let a = sum(i < 4000) sum(j < 4000) sum(k < 4000) i * j * k y = x"),
    "lists of lists": model("let a = [[[1 for k < 4000] for j < 4000] for i < 4000] y = x"),
    "text in arithmetic": model('let a = -"abc" + 1 y = x'),
    "range of NaN": "model m(x: f32[2] in [nan, nan]) -> y: f32[2] { y = relu(x) }",
    "range backwards": "model m(x: f32[2] in [1, 0]) -> y: f32[2] { y = relu(x) }",
    "range of a text": 'model m(x: f32[2] in ["a", 1]) -> y: f32[2] { y = relu(x) }',
    "range of huge numbers": f"model m(x: f32[2] in [0, {10**400}]) -> y: f32[2] {{ y = relu(x) }}",
    "huge repetition": model("for i < 1000000000000 { y = relu(x) } y = x"),
    "empty repetitions": model("for i < 100000 { for j < 100000 { for k < 100000 { } } } y = x"),
    "repetition by a text": model('for i < "a" { } y = relu(x)'),
    "block that uses itself": "block b(x: f32[N, M]) -> y: f32[N, M] { y = b(x) }" + model("y = b(x)"),
    "blocks of blocks": BLOCKS + "\nblock b35(x: f32[N, M]) -> y: f32[N, M] { y = relu(x) }" + model("y = b0(x)"),
    "blocks in blocks": DEEP_BLOCKS + "\nblock b3000(x: f32[N, M]) -> y: f32[N, M] { y = relu(x) }" + model("y = b0(x)"),
    "operator that uses itself": "op f[T: float](x: T[N, M]) -> y: T[N, M] { a = f(x) y[i, j] = a[i, j] }" + model("y = f(x)"),
    "operators of operators": OPS + "\nop o28[T: float](x: T[N, M]) -> y: T[N, M] { y[i, j] = x[i, j] }" + model("y = o0(x)"),
    "functions of functions": operator(
        "let f0(a) = a + a " + " ".join(f"let f{i}(a) = f{i - 1}(a) + f{i - 1}(a)" for i in range(1, 60)) + " y[n, m] = f59(x[n, m])"
    ),
    "functions in intermediate values": operator(
        "let f0(a) = a + a " + " ".join(f"let f{i}(a) = f{i - 1}(a) + f{i - 1}(a)" for i in range(1, 60)) + " z[i < N, j < M] = f59(x[i, j]) y[n, m] = z[n, m]"
    ),
    "functions upon functions": operator("let f(a) = a + a y[n, m] = " + "f(" * 60 + "x[n, m]" + ")" * 60),
    "functions upon functions upon functions": operator("let f(a) = a + a let g(a) = " + "f(" * 14 + "a" + ")" * 14 + " y[n, m] = g(g(g(x[n, m])))"),
    "function of itself": operator("let g(a) = g(a) + 1 y[n, m] = g(x[n, m])"),
    "size of itself": operator("let k = k + 1 y[n, m] = x[n, m] * k"),
    "deep calls": model(f"y = {'relu(' * 5000}x{')' * 5000}"),
    "deep parentheses": model(f"let a = {'(' * 20000}1{')' * 20000} y = x"),
    "deep lists": model(f"param w: f32[1] = {'[' * 3000}1{']' * 3000} y = x"),
    "deep repetitions": model("for i < 1 { " * 3000 + "}" * 3000 + " y = relu(x)"),
    "long sum": model(f"let a = {' + '.join(['1'] * 50000)} y = w"),
    "long negation": model(f"let a = {'-' * 20000}1 y = w"),
    "number of a hundred thousand digits": model(f"let a = {'9' * 100000} y = relu(x) z = w(x)"),
    "huge exponent": model("let a = 1e999999999 param w: f32[a] y = relu(x)"),
    "list where a number belongs": model("y = leaky_relu(x; alpha = [1, 2])"),
    "text where a number belongs": model('y = leaky_relu(x; alpha = "a")'),
    "list in a list of an attribute": "model m(x: f32[1, 1, 4, 4]) -> y: f32[1, 1, 1, 1] { y = adaptive_avg_pool(x; size = [1, []]) }",
    "text in a list of an attribute": model('y = roll(x; axes = [0, 1], shift = ["a", 1])'),
    "truth in a list of an attribute": model("y = roll(x; axes = [0, 1], shift = [true, 1])"),
    "truth where a number belongs": model("y = leaky_relu(x; alpha = true)"),
    "tensor where a number belongs": model("y = leaky_relu(x; alpha = x)"),
    "number where a choice belongs": model("y = gelu(x; approximate = 3)"),
    "infinite axes": model("y = softmax(x; axis = inf)"),
    "huge axis": model(f"y = softmax(x; axis = {10**40})"),
    "huge list of axes": model(f"y = reduce_sum(x; axes = [{', '.join(['0'] * 20000)}])"),
    "huge window": "model m(x: f32[1, 1, 8]) -> y: f32[1, 1, 1] { y = max_pool(x; window = 1000000000000000000000) }",
    "huge dilation": "model m(x: f32[1, 1, 8], w: f32[1, 1, 3]) -> y: f32[1, 1, 1] { y = conv(x, w; dilation = 1000000000000000000000) }",
    "huge repeat": model(f"y = repeat(x; times = {10**30})"),
    "uneven literal": model("param w: f32[2, 2] = [[1, 2], [3]] y = x"),
    "literal of texts": model('param w: f32[2] = ["a", "b"] y = x'),
    "initialiser of nothing": model("param w: f32[2] = uniform() y = x"),
    "initialiser of texts": model('param w: f32[2] = normal("a", "b") y = x'),
    "initialiser of code": model('param w: f32[2] = eval("1") y = x'),
    "initialiser backwards": model("param w: f32[2] = uniform(1, 0) y = x"),
    "initialiser without end": model("param w: f32[2] = uniform(-inf, inf) y = x"),
    "seed of a text": model('param w: f32[2] = uniform(0, 1; seed = "a") y = x'),
    "message of a message": operator('require a: N < 0 else "{x[0, 0]} {__class__.__mro__} {1 // 0} {{}}" y[n, m] = x[n, m]'),
    "result of no equation": "op f[T: float](x: T[N, M]) -> y: T[N, M] { }" + model("y = f(x)"),
    "result of a negative size": "op f[T: float](x: T[N, M]) -> y: T[N - 9, M] { y[i, j] = x[i, j] }" + model("y = f(x)"),
    "result of a huge size": f"op f[T: float](x: T[N, M]) -> y: T[{10**30}, M] {{ y[i, j] = x[0, j] }}" + model("y = f(x)"),
    "sizes below zero": operator("z[i < N, j < -1] = x[i, 0] y[n, m] = x[n, m]"),
    "sizes of no number": operator("z[i < nan] = x[0, 0] y[n, m] = x[n, m]"),
    "bounds of a fraction": operator("y[n, m] = sum(k < N / 3) x[k, m]"),
    "sizes of no list": operator("z[i.. < 3] = x[0, 0] y[n, m] = x[n, m]"),
    "huge family": "op f[T: float](x: T[N, M]) -> ys[i < 1000000000000]: T[M] { ys[i][m] = x[0, m] }" + model("y = f(x)"),
    "control characters": "model m(x: f32[2]) -> y\x1b[31m: f32[2] { y = relu(x) }",
    "half a string": 'model m(x: f32[2]) -> y: f32[2] { param w: f32[2] = data("a',
}  # fmt: skip

# What the checker has no reason to refuse: these are found when the model is to be computed.
COSTLY = {
    "huge bytes inside a definition": """nnir 1

op f[T: float](x: T[N, M]) -> y: T[N] {
  z[n < N, m < M, k < M] = x[n, m] * x[n, k]
  y[n] = sum(m < M, k < M) z[n, m, k]
}

model m(x: f32[0, 1073741824]) -> y: f32[0] {
  y = f(x)
}
""",
    "too large for memory": "model m(x: f32[1000000, 1000000]) -> y: f32[1000000, 1000000] { y = relu(x) }",
    "too large in between": "model m(x: f32[1000000, 1]) -> y: f32[] { h = matmul(x, transpose(x)) y = reduce_sum(h) }",
    "too large a parameter": model("param w: f32[100000, 10000000] y = add(x, reduce_sum(w))"),
    "too large inside an operator": "op f[T: float](x: T[N, M]) -> y: T[N, M] { z[a < 1000000, b < 1000000] = x[0, 0] y[i, j] = z[i, j] }" + model("y = f(x)"),
    "too large a reach of neighbours": "model m(x: f32[1, 2, 2]) -> y: f32[1, 2, 2] { y = local_response_norm(x; size = 4611686018427387904) }",
    "data above the folder": model('param w: f32[4] = data("../../../../../../etc/passwd", "x") y = add(x, w)'),
    "data at an absolute path": model('param w: f32[4] = data("/etc/passwd", "x") y = add(x, w)'),
    "data of a folder": model('param w: f32[4] = data(".", "x") y = add(x, w)'),
    "data of nothing": model('param w: f32[4] = data("", "x") y = add(x, w)'),
    "data of a long name": model(f'param w: f32[4] = data("{"a" * 5000}", "x") y = add(x, w)'),
    "data through a link": model('param w: f32[4] = data("link.safetensors", "w") y = add(x, w)'),
    "data of a pickle": model('param w: f32[4] = data("pickled.safetensors", "w") y = add(x, w)'),
    "data cut short": model('param w: f32[4] = data("short.safetensors", "w") y = add(x, w)'),
    "data of a huge header": model('param w: f32[4] = data("header.safetensors", "w") y = add(x, w)'),
    "data of another shape": model('param w: f32[4] = data("good.safetensors", "five") y = add(x, w)'),
    "data of no such name": model('param w: f32[4] = data("good.safetensors", "__class__") y = add(x, w)'),
    "reading outside": operator("y[n, m] = x[n + 100, m]"),
    "reading outside once": "op f[T: float](x: T[N]) -> y: T[] { y[] = x[N + 1] } model m(x: f32[2]) -> y: f32[] { y = f(x) }",
    "circle": operator("y[n, m] = y[n, m] + 1"),
    "range that no type holds": "model m(x: f32[2] in [1e308, inf]) -> y: f32[2] { y = relu(x) }",
    "range that no integer type holds": "model m(x: i32[2] in [5000000000, inf]) -> y: i32[2] { y = relu(x) }",
    "range of truths that is none": "model m(x: bool[2] in [2, inf]) -> y: bool[2] { y = logical_not(x) }",
    "no label": "model m(x: f32[2, 3], l: i32[2] in [7, 9]) -> y: f32[] { y = cross_entropy(x, l) }",
}  # fmt: skip


class Slow(Exception):
    """A run took too long."""


def _stop(_number: int, _frame: FrameType | None) -> None:
    raise Slow


@pytest.fixture(autouse=True)
def _bounded() -> Iterator[None]:
    """Time and memory end; either would show as a failure of the test."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, before[1]))
    previous = signal.signal(signal.SIGALRM, _stop)
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, previous)
        resource.setrlimit(resource.RLIMIT_AS, before)


def told(capsys: pytest.CaptureFixture[str]) -> str:
    captured = capsys.readouterr()
    return captured.out + captured.err


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A model's folder, with files beside it that are none of a friend's."""
    from safetensors.numpy import save_file

    inside = tmp_path / "models"
    inside.mkdir()
    outside = tmp_path / "secret.safetensors"
    save_file({"w": np.zeros(4, np.float32)}, str(outside))
    (inside / "link.safetensors").symlink_to(outside)
    save_file(
        {"w": np.ones(4, np.float32), "five": np.ones(5, np.float32)},
        str(inside / "good.safetensors"),
    )
    whole = (inside / "good.safetensors").read_bytes()
    (inside / "short.safetensors").write_bytes(whole[: len(whole) // 2])
    (inside / "header.safetensors").write_bytes(struct.pack("<Q", 2**62) + b"{}")
    (inside / "pickled.safetensors").write_bytes(pickle.dumps({"w": [0.0] * 4}))
    return inside


@pytest.mark.parametrize("name", INVALID)
def test_is_refused_by_the_checker(
    name: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = folder / "m.nnir"
    file.write_text(INVALID[name])
    start = time.perf_counter()
    assert status(["check", str(file), "--format", "json"]) == 1
    said = json.loads(capsys.readouterr().out)
    assert not said["valid"]
    assert all(d["message"] and len(d["message"]) < 1000 for d in said["diagnostics"])
    assert len(said["diagnostics"]) < 10
    assert time.perf_counter() - start < SECONDS / 2
    assert status(["check", str(file)]) == 1
    assert "\x1b[31m" not in told(capsys)
    assert status(["run", str(file)]) == 1
    assert "error[" in told(capsys)
    assert status(["fmt", "--check", str(file)]) in (0, 1)


@pytest.mark.parametrize("name", COSTLY)
def test_is_refused_when_it_is_to_be_computed(
    name: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = folder / "m.nnir"
    file.write_text(COSTLY[name])
    assert status(["check", str(file)]) in (0, 1)
    told(capsys)
    assert status(["run", str(file)]) in (1, 2)
    said = told(capsys)
    assert "error[" in said
    assert "root:" not in said
    if name.startswith("too large"):
        assert "run.memory" in said


@pytest.mark.parametrize("of", ["i8", "i64", "u64", "bool", "f16", "f64"])
def test_a_range_without_ends_is_drawn_from(of: str, folder: Path) -> None:
    file = folder / "m.nnir"
    file.write_text(f"model m(x: {of}[3] in [-inf, inf]) -> y: {of}[3] {{ y = identity(x) }}")
    assert status(["run", str(file)]) == 0


def test_a_literal_of_a_hundred_thousand_numbers_is_read(folder: Path) -> None:
    count = 100_000
    file = folder / "m.nnir"
    numbers = ", ".join(str(i % 7) for i in range(count))
    file.write_text(
        f"model m(x: f32[{count}]) -> y: f32[] {{ param w: f32[{count}] = [{numbers}] y = reduce_sum(multiply(x, w)) }}"
    )
    assert status(["check", str(file)]) == 0
    assert status(["run", str(file)]) == 0


@pytest.mark.parametrize(
    "data",
    [
        b"\xff\xfe\x00model",
        b"\x80\x81\x82",
        b"model m\0",
        b"\x89PNG\r\n\x1a\n",
        b"\xef\xbb\xbf\xff",
    ],
    ids=["UTF-16", "no UTF-8", "NUL", "image", "mark"],
)
@pytest.mark.parametrize("verb", ["check", "run", "fmt", "diff"])
def test_what_is_no_text_is_unreadable(
    verb: str, data: bytes, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = folder / "m.nnir"
    file.write_bytes(data)
    assert status([verb, str(file)]) == 2
    assert "error[file." in told(capsys)


@pytest.mark.parametrize("verb", ["check", "run", "fmt", "diff"])
def test_what_is_no_file_is_unreadable(
    verb: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for path in (folder, folder / "none.nnir", Path("a" * 5000), folder / "m.nnir" / "x"):
        assert status([verb, str(path)]) == 2
        assert "error[file." in told(capsys)
    closed = folder / "closed.nnir"
    closed.write_text("model")
    closed.chmod(0)
    if not os.access(closed, os.R_OK):
        assert status([verb, str(closed)]) == 2
        assert "error[file." in told(capsys)


class Opened:
    """Makes a file where it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return (Path.touch, (self.path,))


def test_arrays_are_never_unpickled(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = folder / "m.nnir"
    file.write_text(model("y = relu(x)"))
    trace = folder / "trace"
    evil = folder / "evil.npy"
    np.save(evil, np.array([Opened(trace)], dtype=object), allow_pickle=True)
    assert status(["run", str(file), "--input", f"x={evil}"]) == 2
    assert "error[file.npy]" in told(capsys)
    evil.write_bytes(pickle.dumps(Opened(trace)))
    assert status(["run", str(file), "--input", f"x={evil}"]) == 2
    assert "pickle.load" not in told(capsys), "nobody is told how to load it all the same"
    assert not trace.exists()


_PIECES = [
    b"(",
    b")",
    b"{",
    b"}",
    b"'",
    b",",
    b"9" * 30,
    b"-1",
    b"O",
    b"|V0",
    b"\0",
    b"\\",
    b"[",
    b"f8,f8",
]


@given(st.data())
@settings(max_examples=300, deadline=None)
def test_a_header_that_is_none_is_told(data: st.DataObject) -> None:
    """NumPy parses it as Python's text, and raises what that raises."""
    stream = io.BytesIO()
    np.save(stream, np.ones((2, 3), np.float32))
    raw = bytearray(stream.getvalue())
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(6, 90))
        raw[at : at + data.draw(st.integers(0, 9))] = data.draw(st.sampled_from(_PIECES))
    with tempfile.NamedTemporaryFile(suffix=".npy") as file:
        file.write(raw)
        file.flush()
        found: Any = ()
        try:
            found = load_npy(file.name)
        except InvalidInput as error:
            found = error.diagnostics
    if not isinstance(found, np.ndarray):
        (told_of,) = found
        assert told_of.code == "file.npy"
        assert len(told_of.message) < 400


def test_weights_beyond_the_type_are_refused(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from safetensors.numpy import save_file

    save_file({"w": np.array([0, 1, 1e300, np.inf])}, str(folder / "wide.safetensors"))
    file = folder / "m.nnir"
    file.write_text(model('param w: f32[4] = data("wide.safetensors", "w") y = add(x, w)'))
    assert status(["run", str(file), "--bind", "N=2"]) == 1
    assert "do not fit" in told(capsys)


def test_weights_of_a_type_that_no_array_has_are_refused(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    header = json.dumps({"w": {"dtype": "F8_E4M3", "shape": [4], "data_offsets": [0, 4]}}).encode()
    small = folder / "small.safetensors"
    small.write_bytes(struct.pack("<Q", len(header)) + header + bytes(4))
    file = folder / "m.nnir"
    file.write_text(model('param w: f32[4] = data("small.safetensors", "w") y = add(x, w)'))
    assert status(["run", str(file), "--bind", "N=2"]) in (1, 2)
    assert "error[data.file]" in told(capsys)


@pytest.mark.parametrize(
    "array",
    [np.zeros((2, 5), np.float32), np.full((2, 4), 2.0, np.float32), np.zeros((2, 4), np.complex64),
     np.full((2, 4), np.nan, np.float32), np.zeros((2, 4), "U3"), np.zeros(8, np.float32),
     np.full((2, 4), 1e300)],
    ids=["shape", "range", "complex", "NaN", "texts", "rank", "beyond"],
)  # fmt: skip
def test_arrays_that_do_not_fit_are_refused(
    array: np.ndarray[Any, Any], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = folder / "m.nnir"
    file.write_text(model("y = relu(x)"))
    np.save(folder / "x.npy", array)
    assert status(["run", str(file), "--input", f"x={folder / 'x.npy'}"]) in (1, 2)
    assert "error[" in told(capsys)


def test_a_scalar_outside_its_range_is_refused(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = folder / "m.nnir"
    file.write_text("model m(x: f32[] in [0, 1]) -> y: f32[] {\n  y = relu(x)\n}\n")
    np.save(folder / "x.npy", np.float32(2))
    assert status(["run", str(file), "--input", f"x={folder / 'x.npy'}"]) == 1
    assert "`x` is declared in [0, 1]; element [] is 2.0" in told(capsys)


def test_an_array_cut_short_is_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = folder / "m.nnir"
    file.write_text(model("y = relu(x)"))
    np.save(folder / "x.npy", np.zeros((2, 4), np.float32))
    whole = (folder / "x.npy").read_bytes()
    for part in (whole[:-8], whole[:20], whole[:7], b"", whole.replace(b"(2, 4)", b"(2**40, 4)")):
        (folder / "x.npy").write_bytes(part)
        assert status(["run", str(file), "--input", f"x={folder / 'x.npy'}"]) == 2
        assert "error[file.npy]" in told(capsys)
    huge = whole.replace(b"(2, 4), }", b"(2000000000000, 4), }").replace(b"           \n", b"\n")
    (folder / "x.npy").write_bytes(huge)
    assert status(["run", str(file), "--input", f"x={folder / 'x.npy'}"]) == 2
    assert "error[file.npy]" in told(capsys)


@pytest.mark.parametrize(
    "arguments",
    [["--bind", "N=x"], ["--bind", "N=-1"], ["--bind", "N=" + "9" * 400], ["--bind", "Q=3"], ["--bind", "N"],
     ["--input", "x"], ["--input", "x=none.npy"], ["--input", "=a"], ["--on", "nothing"], ["--model", "none"],
     ["--seed", "x"], ["--seed", "-1"], ["--format", "xml"], ["--bind", "N=9" + "0" * 17],
     ["--bind", "N=1", "--bind", "N=2"]],
    ids=" ".join,
)  # fmt: skip
def test_wrong_usage_is_told(
    arguments: list[str], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = folder / "m.nnir"
    file.write_text(model("y = relu(x)"))
    assert status(["run", str(file), *arguments]) in (1, 2)
    assert "rror" in told(capsys)


@pytest.mark.parametrize("verb", ["diff", "reduce", "localize", "analyze", "fuzz"])
@pytest.mark.parametrize("arguments", [["--targets", ""], ["--targets", " , "], ["--seed", "-1"]])
def test_no_target_and_no_seed_are_told(
    verb: str, arguments: list[str], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = folder / "m.nnir"
    file.write_text(model("y = relu(x)"))
    assert status([verb, *([] if verb == "fuzz" else [str(file)]), *arguments]) == 2
    assert "Invalid value for" in told(capsys)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no full device")
@pytest.mark.parametrize(("target", "code"), [(">/dev/full", 2), (">&-", 0)])
def test_standard_output_that_takes_nothing(target: str, code: int, folder: Path) -> None:
    (folder / "m.nnir").write_text(model("y = relu(x)"))
    command = f"{shlex.quote(sys.executable)} -m irlang check m.nnir {target}"
    done = subprocess.run(
        ["sh", "-c", command], cwd=folder, capture_output=True, text=True, timeout=60, check=False,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])},
    )  # fmt: skip
    assert done.returncode == code
    assert "Traceback" not in done.stderr
    assert len(done.stderr.splitlines()) == (code > 0)


def test_results_stay_in_their_folder(folder: Path) -> None:
    file = folder / "m.nnir"
    file.write_text("model m(x: f32[2]) -> __init__: f32[2] { __init__ = relu(x) }")
    assert status(["run", str(file), "--out", str(folder / "out")]) == 0
    assert [path.name for path in (folder / "out").iterdir()] == ["__init__.npy"]


@pytest.mark.parametrize("number", [1, 31, 32, 33, 65, 700])
def test_a_call_may_have_very_many_operands(number: int, folder: Path) -> None:
    """The terms that they are written out as are nested by groups, not one inside the other."""
    names = [f"x{place}" for place in range(number)]
    given = ", ".join(f"{name}: f32[2]" for name in names)
    read = ", ".join(names)
    file = folder / "m.nnir"
    file.write_text(
        f"nnir 1\nmodel m({given}) -> all: f32[{2 * number}], total: f32[2] {{\n"
        f"  all = concat({read}; axis = 0)\n  total = add_n({read})\n}}\n"
    )
    fed = {name: np.array([place, -1], np.float32) for place, name in enumerate(names)}
    found = irlang.load(str(file)).run(fed)
    np.testing.assert_array_equal(found["all"], np.concatenate(list(fed.values())))
    np.testing.assert_array_equal(found["total"], sum(fed.values()))


def test_what_is_too_deep_to_be_followed_is_told(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some walk has no end in sight on a file that nobody has thought of: no traceback."""

    def endless(*_: Any, **__: Any) -> Any:
        return endless()

    monkeypatch.setattr("irlang.commands.check._checked", endless)
    file = folder / "m.nnir"
    file.write_text("nnir 1\nmodel m(x: f32[2]) -> y: f32[2] { y = relu(x) }\n")
    assert status(["check", str(file)]) == 2
    assert told(capsys).startswith("error: what is given is nested too deeply")
