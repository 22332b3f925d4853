"""Sizes that a model leaves open: its text is written for examples of them, and must not change."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Protocol, TypeVar

from irlang.diagnostics import Diagnostic, fail
from irlang.importers.sizes import Dim


class Written(Protocol):
    """What an importer makes."""

    @property
    def text(self) -> str:
        """The model as text."""


Made = TypeVar("Made", bound=Written)
Example = Mapping[str, int]


def settle(
    names: Sequence[str],
    rounds: Iterable[Sequence[Example]],
    attempt: Callable[[Example], Made | list[Diagnostic]],
) -> Made | list[Diagnostic]:
    """What is made for all examples of the first round that fits; else what is wrong with the
    first of them.

    names: of the open sizes. attempt: writes a model for an example, or says what is wrong. Raises
    `import.sizes` where the texts of a round differ.
    """
    first: list[Diagnostic] | None = None
    for round_ in rounds:
        made: list[Made] = []
        for sizes in round_:
            item = attempt(sizes)
            if isinstance(item, list):
                first = first or [_with_help(problem, names) for problem in item]
                break
            made.append(item)
        else:
            if len({item.text for item in made}) == 1:
                return made[0]
            break  # fits all of them, and hangs on the example
    else:
        assert first is not None
        return first
    shown = ", ".join(f"`{name}`" for name in names)
    raise fail(
        "import.sizes",
        f"what the model computes takes another form for other sizes {shown}",
        help=f"say what they are: --bind {names[0]}=4",
    )


def _with_help(problem: Diagnostic, open_: Sequence[str]) -> Diagnostic:
    """What a definition refuses may fit for one size only: the one that a model was traced with."""
    if not open_ or problem.code.startswith(("import.", "file.")):
        return problem
    sizes = " ".join(f"--bind {name}=4" for name in open_)
    return replace(problem, help=f"if the model is made for one size, say so: {sizes}")


def examples(names: list[str]) -> Iterator[list[dict[str, int]]]:
    """Examples: different for every size, so that nothing fits by chance; then multiples of what
    networks halve; then the same for all.
    """

    def dims(numbers: Iterable[int]) -> dict[str, int]:
        # the name in the text comes from the writer; here only the example counts
        return {name: Dim(n, {(name,): 1}) for name, n in zip(names, numbers, strict=False)}

    if not names:
        yield [{}]
        return
    count = len(names)
    yield [dims(_primes(start, count)) for start in (7, 11, 1009)]
    yield [dims(range(64 * i, 64 * (i + count), 64)) for i in (1, 2, 16)]
    yield [dims([size] * count) for size in (7, 11, 1009)]
    yield [dims([size] * count) for size in (64, 128, 1024)]


def _primes(start: int, count: int) -> list[int]:
    """So many primes from a number on."""
    found: list[int] = []
    while len(found) < count:
        if all(start % divisor for divisor in range(2, math.isqrt(start) + 1)):
            found.append(start)
        start += 1
    return found
