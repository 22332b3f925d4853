"""What a framework says, in the words that tell one reason from another.

Around them stand codes, names of nodes, places in its sources and signatures of its functions: of
use to whoever mends it, and in the way of whoever reads a title or a table.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

# What stands around the reason, the outermost first: taken away where something is left.
_AROUND = tuple(
    re.compile(pattern, re.DOTALL)
    for pattern in (
        r"\{\{.*?\}\}",  # TensorFlow: a node
        r"\[Op:\w+\](?: name:\s*\S*)?",
        r"\A\[\w+\] : \d+ : \w+ : ",  # ONNX Runtime: a code
        r"\A.*?\bStatus Message: ",  # behind the node that was running
        r"\ANode \([^()]*\) Op \(\w+\) ",
        r"\A\[\w+Error\] ",
        r"\AException during initialization:\s+",
        r"\A\[\d\d:\d\d:\d\d\] \S+:\d+: (?:Check failed: )?",  # MXNet: when and where
        r"\s+Stack trace:\s.*\Z",
        r"\A\S*/\S+:\d+ .*? was false\.\s+",  # a condition of its sources, and their function
        r"\A\S*/\S+:\d+ [^()]*\([^()]*\)(?: const)? (?=\S.* was false\.\Z)",  # which says it alone
        r"\A\S+\.(?:cc|cpp|cu|h|hpp|py):\d+:?\s+",  # a place there
        r"\Abackend='\w+' raised:\s+(?:\w+Error: )?",  # PyTorch: what compiles, and how to ask more
        r"\s+(?:Developer debug context|Set TORCHDYNAMO_VERBOSE=1|from user code:)\s.*\Z",
        # OpenVINO: places, a pass, a condition, the node and its shapes
        r"\A(?:Exception from \S+:\d+:\s+)+",
        r"\A\[\w+\] END: .*? CALLBACK HAS THROWN:\s+(?:Exception from \S+:\d+:\s+)*",
        r"\ACheck '.*?' failed at \S+:\d+:\s+",
        r"\AWhile validating node .*? with friendly_name '[^']*':\s+",
        r"\AShape inference input shapes \{[^{}]*\}\s+",
    )
)
# What comes before the folder of a package: where somebody has installed it.
_INSTALLED = re.compile(r"(?<![\w/])/[^\s\"']*?(?=/(?:site|dist)-packages/)")
# What a process prints behind its last words: where it was, which its signal says as well.
_TRACE = re.compile(
    r"^(?:Fatal Python error|Current thread|Thread 0x|Extension modules|\*{3} Check failure stack)",
    re.MULTILINE,
)
_SHORT = 20  # characters of a first sentence that says too little by itself
_CALLS = 5  # names of calls on one line
_LAST = 400  # characters of the last words that are of interest


def together(calls: Sequence[str]) -> str:
    """The names of calls that are wrong together, in their order; the first where they are many."""
    if len(calls) <= _CALLS:
        return " + ".join(calls)
    return f"{' + '.join(calls[: _CALLS - 1])} + … ({len(calls)} calls)"


def bare(message: str) -> str:
    """The reason in what a framework says, as it says it."""
    text = message.strip()
    for pattern in _AROUND:
        left = pattern.sub(" ", text).strip()
        text = left if re.search(r"[A-Za-z]{3}", left) else text
    return text


def essence(message: str) -> str:
    """The reason in what a framework says, on one line."""
    return " ".join(bare(message).replace("`", "").split())


def first_words(message: str, most: int) -> str:
    """The reason up to its first stop, in so many characters at most."""
    first = ""
    for part in re.split(r"(?<=[a-z][.;:]) ", essence(message)):
        first = f"{first} {part}".strip()
        if len(first) > _SHORT:
            break
    first = first.rstrip(".;:")
    return first if len(first) <= most else f"{first[:most].rpartition(' ')[0] or first[:most]} …"


def anywhere(message: str) -> str:
    """What a framework says, whoever has installed it wherever."""
    return _INSTALLED.sub("…", message)


def last_words(output: str) -> str:
    """The end of what a process has printed of its own accord before it ended."""
    own = _TRACE.split(output, maxsplit=1)[0].strip()
    return own if len(own) <= _LAST else f"… {own[-_LAST:].partition(' ')[2]}"
