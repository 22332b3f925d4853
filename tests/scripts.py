"""Programs that are run as somebody would run them, each in a process of its own.

An import of a framework takes five to fifteen seconds. Here a process that has imported it, and has
done nothing else, forks for each program, which finds the import done and all else as at the start.
What a program sets before such an import has no effect then: who tests that runs it anew.
"""

from __future__ import annotations

import functools
import json
import subprocess
import sys
from pathlib import Path
from subprocess import CompletedProcess, Popen

# By the first part of a target's name, or by its whole name.
_IMPORTS = {
    "torch": "torch", "tf": "tensorflow", "tflite": "tensorflow", "jax": "jax",
    "keras:tensorflow": "tensorflow", "keras:torch": "torch",
}  # fmt: skip

_FORKS = """
import importlib, json, os, runpy, sys, traceback
if sys.argv[1]:
    importlib.import_module(sys.argv[1])
for line in sys.stdin:
    asked = json.loads(line)
    child = os.fork()
    if child == 0:
        for descriptor, path in enumerate((os.devnull, *asked["said"])):
            flags = os.O_RDONLY if descriptor == 0 else os.O_WRONLY | os.O_CREAT | os.O_TRUNC
            os.dup2(os.open(path, flags), descriptor)
        status = 0
        try:
            os.chdir(asked["folder"])
            sys.argv = asked["arguments"]
            runpy.run_path(sys.argv[0], run_name="__main__")
        except SystemExit as left:
            status = left.code if isinstance(left.code, int) else int(left.code is not None)
        except BaseException:
            traceback.print_exc()
            status = 1
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


@functools.cache
def _forking(python: str, module: str) -> Popen[str]:
    """It ends when its input does, which is when this process ends."""
    return Popen(
        [python, "-I", "-c", _FORKS, module],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip


def ran(target: str, program: Path, *arguments: object, python: str = "") -> CompletedProcess[str]:
    """Runs a program of a target in its own folder, without what is installed for one user."""
    module = _IMPORTS.get(target) or _IMPORTS.get(target.partition(":")[0], "")
    process = _forking(python or sys.executable, module)
    assert process.stdin is not None
    assert process.stdout is not None
    said = [str(program.with_suffix(f".{name}")) for name in ("stdout", "stderr")]
    line = [str(program), *map(str, arguments)]
    asked = {"arguments": line, "folder": str(program.parent), "said": said}
    process.stdin.write(json.dumps(asked) + "\n")
    process.stdin.flush()
    status = int(process.stdout.readline())
    out, err = (Path(path).read_text("utf-8") for path in said)
    return CompletedProcess(line, status, out, err)
