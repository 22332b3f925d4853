"""A script that shows a finding with one framework and NumPy alone: expected, got, versions.

It is the program that the target's worker ran, with the inputs in it. Where there are very many
elements, long arrays are read from the safetensors file beside it, by a few lines that need no
package.
"""

from __future__ import annotations

import base64
import re
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from irlang.diff.report_lines import Lines, straight
from irlang.lower import onnx_scripts
from irlang.lower.lower import Lowered
from irlang.lower.names import docstring
from irlang.lower.target import describe

Array = np.ndarray[Any, np.dtype[Any]]
DEFINITION = "the definition of the operator"  # what says which results are right
MOST_INLINE = 512  # elements that are written into a script
_MOST_MODEL = 6000  # bytes of a model file that are written into a script
_MOST_LISTED = 3000  # characters of a model's text
_WIDTH = 88  # of a line of numbers, which others stand around
_SHOWN = 64  # elements of an expected result that are written into a script


def script(
    lowered: Lowered,
    inputs: Mapping[str, Array],
    expected: Mapping[str, str],
    title: str,
    beside: str,
    narrow: Sequence[str] = (),
    typed: bool = False,
    measure: str = DEFINITION,
) -> str:
    """The text of the script.

    expected: the results by the definition, as text, as far as anything is known of them. beside:
    the name of the safetensors file; a model file that is too large for the text has the script's
    name. narrow: the inputs and results that are bfloat16, which a model file is fed with and gives
    as bits. typed: whether the type and the shape of results are shown rather than their elements.
    measure: by what the expected results are expected.
    """
    arrays = {**inputs, **lowered.params}
    inline = sum(array.size for array in arrays.values()) <= MOST_INLINE
    stored = frozenset() if inline else frozenset(n for n, a in arrays.items() if a.size > _SHOWN)
    written = {name: _array(name, array, stored) for name, array in arrays.items()}
    head = [
        f'"""{docstring(title)}\n\n{_ABOUT.format(measure)}"""',
        "" if inline else _READ.format(beside=beside),
        _BITS if any("bits(" in text for text in written.values()) else "",
    ]
    lines = None
    if lowered.kind == "python" and (lowered.slopes is not None or not lowered.gradients):
        real = [name for name, array in arrays.items() if array.dtype.kind == "f"]
        slopes = lowered.slopes if lowered.gradients else None
        lines = straight(str(lowered.code), written, slopes, real)
    if lines is not None:
        parts = _lines(lines, head, inline, expected, typed)
    elif lowered.kind == "onnx" and not narrow and onnx_scripts.is_plain(lowered.target):
        parts = _session(lowered, inputs, written, head, inline, expected, typed)
    else:
        parts = _functions(lowered, inputs, written, head, inline, expected, narrow, typed)
    return "\n\n\n".join(part.strip("\n") for part in parts if part.strip()) + "\n"


def _lines(
    lines: Lines, head: Sequence[str], inline: bool, expected: Mapping[str, str], typed: bool
) -> list[str]:
    """The parts of a script without functions of its own."""
    about, *functions = head
    imports = lines.imports
    if not inline:
        imports = f"import json\n{imports.replace('import sys', _FILES, 1)}"
    versions = ", ".join(f'"{name}", {text}' for name, text in lines.versions.items())
    shown = _shown(lines.results, expected, typed)
    telling = f'print("python", sys.version.split()[0], {versions})'
    main = [telling, lines.given, lines.body, "\n".join(shown)]
    return [
        about, imports, *functions, lines.helpers, "\n\n".join(part for part in main if part)
    ]  # fmt: skip


def _session(
    lowered: Lowered,
    inputs: Mapping[str, Array],
    written: Mapping[str, str],
    head: Sequence[str],
    inline: bool,
    expected: Mapping[str, str],
    typed: bool,
) -> list[str]:
    """The parts of a script that runs a model file and nothing else."""
    known = describe(lowered.target)
    model, imports = _held(lowered), ["import sys"]
    if model:
        imports.append("import base64")
    if not inline:
        imports.append("import json")
    if not inline or not model:
        imports.append("from pathlib import Path")
    load, own, ran = onnx_scripts.session(known.framework, known.mode, bool(model), _BESIDE)
    framework = own.split("\n", 1)[0].removeprefix("import ")
    about, *functions = head
    given = _dictionary({name: written[name] for name in inputs})
    names = onnx_scripts.results(_bytes(lowered))
    texts = {name: f"results[{place}]" for place, name in enumerate(names)}
    shown = _shown(texts, expected, typed)
    telling = (
        f'print("python", sys.version.split()[0], "numpy", np.__version__, "{framework}", '
        f"{framework}.__version__)"
    )
    main = [model, telling, f"{load}\ninputs = {given}\nresults = {ran}", "\n".join(shown)]
    heading = "\n".join([*sorted(imports), "", "import numpy as np", own])
    return [about, heading, *functions, "\n\n".join(part.strip("\n") for part in main if part)]


def _shown(texts: Mapping[str, str], expected: Mapping[str, str], typed: bool) -> list[str]:
    """Lines that print every result, given by its text, beside what is expected of it, if known."""
    found = []
    for name, text in texts.items():
        got = (_TYPED if typed else _TEXT).format(text)
        if name in expected:
            found.append(f"print({_quoted(f'{name} expected')}, {_quoted(expected[name])})")
        found.append(f"print({_quoted(f'{name} got     ')}, {got})")
    return found


def _bytes(lowered: Lowered) -> bytes:
    assert isinstance(lowered.code, bytes)
    return lowered.code


def _functions(
    lowered: Lowered,
    inputs: Mapping[str, Array],
    written: Mapping[str, str],
    head: Sequence[str],
    inline: bool,
    expected: Mapping[str, str],
    narrow: Sequence[str],
    typed: bool,
) -> list[str]:
    """The parts of a script with the functions of a worker's program."""
    body = _python(str(lowered.code)) if lowered.kind == "python" else _model(lowered, narrow)
    given = "\n".join(
        f"{kind} = {_dictionary({name: written[name] for name in kept})}"
        for kind, kept in (("inputs", inputs), ("params", lowered.params))
        if kept or kind == "inputs"
    )
    about, *functions = head
    got = "numbers(value) if name in NARROW else value" if narrow else "value"
    end = _END.format(
        run=_run(lowered, "run"),
        frameworks=repr(_frameworks(body)),
        gradients=_GRADIENTS.format(_run(lowered, "gradients")) if lowered.gradients else "",
        got=_TYPED.format("value") if typed else _TEXT.format(f"np.asarray({got})"),
    )
    return [
        about,
        _imports(body, inline),
        *functions,
        _NUMBERS if narrow else "",
        _without_imports(body),
        given,
        f"expected = {_dictionary({name: _quoted(text) for name, text in expected.items()})}"
        + (f"\nNARROW = {tuple(narrow)!r}" if narrow else ""),
        end,
    ]


def _run(lowered: Lowered, function: str) -> str:
    if lowered.kind == "python":
        return f"{function}(inputs, {'params' if lowered.params else '{}'})"
    return f"{function}(inputs)"


def _python(code: str) -> str:
    """The program without its own description and without what reads files."""
    head = code.partition("\ndef main():")[0]
    return re.sub(r'\A""".*?"""\n', "", head, count=1, flags=re.DOTALL)


def _model(lowered: Lowered, narrow: Sequence[str]) -> str:
    """What loads the model, which is written into the script where it is small."""
    known = describe(lowered.target)
    return onnx_scripts.function(known.framework, known.mode, _held(lowered), _BESIDE, narrow)


def _held(lowered: Lowered) -> str:
    """The model as a statement, with its nodes as comments; nothing of one that is not small."""
    code = _bytes(lowered)
    if len(code) > _MOST_MODEL:
        return ""
    encoded = base64.b64encode(code).decode("ascii")
    lines = [f'    "{encoded[i : i + 96]}"' for i in range(0, len(encoded), 96)]
    return "\n".join([f"{_listing(code)}MODEL = base64.b64decode(", *lines, ")\n"])


def _listing(code: bytes) -> str:
    """The model as comments: what a maintainer knows is its nodes, not our operators' names."""
    text = onnx_scripts.listing(code)
    if len(text) > _MOST_LISTED:
        return ""
    return "".join(f"# {line}".rstrip() + "\n" for line in text.splitlines())


_IMPORT = re.compile(r"^(?:import|from) .*$\n?", re.MULTILINE)


_NAMES = "\nINPUTS = "
_PATH = "from pathlib import Path"
_STANDARD = frozenset({"base64", "collections", "ctypes", "json", "sys", "pathlib", "os"})


def _root(line: str) -> str:
    return re.split(r"[ .\n]", line)[1]


def _frameworks(body: str) -> tuple[str, ...]:
    """The packages whose versions are told."""
    roots = {_root(line) for line in _IMPORT.findall(body)} | {"numpy"}
    return tuple(sorted(roots - _STANDARD))


def _imports(body: str, inline: bool) -> str:
    """What a script begins with. Of a program that is its head, in its order: what is set before a
    framework is imported has to stand there.
    """
    head = _head(body)
    lines = [line.strip() for line in _IMPORT.findall(head or body)]
    wanted = {"import sys", "import numpy as np"}
    if not inline:
        wanted |= {"import json", _PATH}
    elif "Path(" in body:
        wanted.add(_PATH)
    if head:
        more = sorted(wanted - set(lines))
        kept = (line for line in head.strip("\n").splitlines() if line != _PATH or line in wanted)
        return "\n".join([*more, *kept])
    wanted |= set(lines) - {_PATH}
    first = sorted(line for line in wanted if _root(line) in _STANDARD)
    others = sorted(line for line in wanted if _root(line) not in _STANDARD)
    return "\n".join([*first, "", *others])


def _head(body: str) -> str:
    """What stands before the names of a program's tensors; nothing of what loads a model."""
    head, names, _ = body.partition(_NAMES)
    return head if names else ""


def _without_imports(body: str) -> str:
    return _IMPORT.sub("", body.removeprefix(_head(body)))


def _array(name: str, array: Array, stored: frozenset[str]) -> str:
    """An expression for an array, which is read from the file if it is stored there."""
    return f"FILE[{name!r}]" if name in stored else _wrapped(_written(array))


def _dictionary(values: Mapping[str, str]) -> str:
    """A dictionary of expressions."""
    if not values:
        return "{}"
    rows = (f"    {_quoted(name)}: {text}," for name, text in values.items())
    return "\n".join(["{", *rows, "}"])


def _written(array: Array) -> str:
    """An array as NumPy code; of bfloat16 the programs take the bits."""
    if array.dtype.name == "bfloat16":
        return f"bits({listed(array)})" if array.size else f"np.zeros({array.shape}, np.uint16)"
    if array.size == 0:
        return f"np.zeros({array.shape}, np.{_type(array)})"
    return f"np.array({listed(array)}, np.{_type(array)})"


def _quoted(text: str) -> str:
    """A string as it is written in Python code."""
    return repr(text) if '"' in text or not text.isprintable() or "\\" in text else f'"{text}"'


def _wrapped(text: str) -> str:
    """Nested lists in lines that can be read."""
    return "\n    ".join(
        textwrap.wrap(text, _WIDTH, break_long_words=False, break_on_hyphens=False)
    )  # fmt: skip


def _type(array: Array) -> str:
    return "bool_" if array.dtype == bool else array.dtype.name


def listed(array: Array) -> str:
    """Nested lists; reals by the shortest text that is the same number in their own type."""
    if array.ndim:
        return f"[{', '.join(map(listed, array))}]" if array.shape[0] else "[]"
    text = str(array[()])
    return {"nan": "np.nan", "inf": "np.inf", "-inf": "-np.inf"}.get(text, text)


_ABOUT = """Needs the framework and NumPy only. Prints what {} gives,
what the framework gives, and the versions.
"""
_READ = '''
def tensors(path):
    """The arrays of a safetensors file by name."""
    data = path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    types = {{"F16": "f2", "F32": "f4", "F64": "f8", "BF16": "u2", "BOOL": "?"}}
    types.update({{s + str(8 * n): s.lower() + str(n) for s in "IU" for n in (1, 2, 4, 8)}})
    found = {{}}
    for name, entry in json.loads(data[8 : 8 + size]).items():
        start, stop = (8 + size + offset for offset in entry["data_offsets"])
        found[name] = np.frombuffer(data[start:stop], types[entry["dtype"]]).reshape(entry["shape"])
    return found


FILE = tensors(Path(__file__).with_name("{beside}"))
'''
_BITS = '''
def bits(values):
    """Numbers of bfloat16 as their bits: the upper half of those of float32."""
    return (np.array(values, np.float32).view(np.uint32) >> 16).astype(np.uint16)
'''
_NUMBERS = '''
def numbers(value):
    """The numbers of bfloat16 that bits stand for."""
    return (np.asarray(value, np.uint16).astype(np.uint32) << 16).view(np.float32)
'''

_GRADIENTS = """
results.update((f"d_{{name}}", value) for name, value in {}.items())"""
_END = """
print("python", sys.version.split()[0])
for name in {frameworks}:
    print(name, sys.modules[name].__version__)
results = {run}{gradients}
for name, value in results.items():
    if name in expected:
        print(name, "expected", expected[name])
    print(name, "got     ", {got})
"""
_BESIDE = 'Path(__file__).with_suffix(".onnx")'
_TEXT = 'np.array2string({}, separator=", ", floatmode="unique")'
_TYPED = 'f"{{{0}.dtype}}{{list({0}.shape)}}"'
_FILES = "import sys\nfrom pathlib import Path"
