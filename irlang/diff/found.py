"""A disagreement that was looked into: what is known of it, and what makes two of them one."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import numpy as np

from irlang import ast
from irlang.diff.calls import Case
from irlang.diff.cause import cause
from irlang.diff.reduce import number_kinds
from irlang.diff.verdict import INCONSISTENT, Verdict, at_edge, only_shapes
from irlang.interp.balls import Ball
from irlang.lower.target import describe

Array = np.ndarray[Any, np.dtype[Any]]
# The place in a framework's sources that a process ends at which finds a condition not to hold.
_CHECKED = re.compile(r"([\w-]+\.(?:cc|cpp|h|hpp):\d+)\W.*\b(?:Check|Assertion)\b")
_ONCE = " once"  # at the end of the signature of what was not repeated


@dataclass(slots=True)
class Found:
    """One disagreement.

    operator: the culprit's; operators that are wrong only together as `pad + max_pool`, all that
    the reduction has left; `program` where they are more than a fusion takes. attributes: those
    that a reduction has left. reduced: the smallest case that still shows it. others: the verdicts
    of other targets on that. expected: the oracle's
    balls, got: the target's values, both of the reduced case. versions: of all targets, with
    those of Python and NumPy. fault: what makes the program invalid, and
    requirement: the name of what that breaks; both empty of a valid one. within: the finding of the
    operator in whose composition it was met. plain: the target whose results are expected where the
    definition leaves them open, of what is `inconsistent`. repeated: whether the reduced program
    shows it again in a process that has run nothing else; tried: whether there was time for that.
    output: what the process has printed that was lost. words: in which other targets refuse an
    invalid one. functions: of the target that have ended the process of an invalid one, which may
    be several for one operator. subject: of an invalid one, the input whose axes are not what the
    signature of its operator says. signature: what makes two findings one.
    """

    seed: int
    target: str
    verdict: Verdict
    operator: str
    attributes: dict[str, str]
    version: str
    reduced: Case
    whole: Case
    trials: int = 0
    others: dict[str, str] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    expected: dict[str, Ball] = field(default_factory=dict)
    got: dict[str, Array] = field(default_factory=dict)
    fault: str = ""
    requirement: str = ""
    within: Found | None = None
    plain: str = ""
    repeated: bool = True
    tried: bool = True
    output: str = ""
    words: dict[str, str] = field(default_factory=dict)
    functions: str = ""
    subject: str = ""

    @property
    def cause(self) -> str:
        """What explains it whatever the operator (`irlang.diff.cause`); empty if nothing does."""
        numbers = chain(
            self.reduced.values.values(), (ball.value for ball in self.expected.values())
        )
        return cause(self.target, self.verdict, numbers, self.requirement)

    @property
    def alike(self) -> str:
        """What shows that it is no matter of the target's mode: the framework without that, or with
        another backend in its place, where that does the same; empty if none does.
        """
        own, told = describe(self.target), at_edge(self.verdict.verdict)
        of_backend = own.mode and not own.plain and not only_shapes(self.target)
        for target in (t for t, other in self.others.items() if at_edge(other) == told):
            other = describe(target)
            same = (other.framework, other.version) == (own.framework, own.version)
            beside = other.mode and not other.plain and not only_shapes(target)
            if target == own.plain or (of_backend and beside and same):
                return target
        return ""

    @property
    def origin(self) -> str:
        """Whose defect it is: the framework's itself, where its mode, or its backend, does nothing
        but what it does without, or with another. What optimises is the framework as it is used.
        """
        plain = describe(self.target).plain
        usual = [t for t in self.others if describe(t).plain == self.target and not _mode(t)]
        for target in usual:  # what this one is without optimisation
            if at_edge(self.others[target]) == at_edge(self.verdict.verdict):
                return target
        if not self.alike or (plain and not _mode(self.target)):
            return self.target
        return plain or describe(self.target).framework

    @property
    def signature(self) -> str:
        """Culprit, verdict, target and the attributes that are left; of numbers, which are given.
        What several modes of a framework do, as it does without, is one, and what its backends do.
        Where the operator is not what explains it, the target and the cause alone. Of an invalid
        call that is accepted, the requirement that it breaks; of one that ends a process by a check
        of the framework's own, the place of that.

        Of an edge value, and of what is inconsistent, also what kind of number was expected, and
        what was got, whatever the sign of an infinity. One that was not repeated hides none that
        is.
        """
        pattern = sorted(said_of(name, value) for name, value in self.attributes.items())
        if self.verdict.verdict in ("edge", INCONSISTENT):
            kinds = number_kinds(self.verdict.expected, self.verdict.got)
            pattern.append(f"{kinds[0]} not {kinds[1]}")
        if self.verdict.stage == "backward":
            pattern = [self.verdict.stage, *pattern]
        if self.fault:
            checked = _CHECKED.search(self.output) if self.verdict.verdict == "crash" else None
            broken = [self.requirement, *self._broken_by(pattern)]
            pattern = ["invalid", *([checked[1]] if checked is not None else broken)]
            pattern += [self.functions] if self.functions else []
        said = " ".join([self.origin, self.verdict.verdict, self.operator, *pattern])
        if self.cause:
            said = f"{self.origin} {self.cause}"
        return said if self.repeated else f"{said}{_ONCE}"

    def _broken_by(self, pattern: list[str]) -> list[str]:
        """What tells invalid calls apart that break one requirement. Of those that are accepted
        nothing does, if the definition has it: whichever attribute breaks it, it is not looked at.
        """
        if self.subject:
            return [self.subject]
        body = self.reduced.graph.nodes[0].op.body
        own = any(isinstance(s, ast.Require) and s.name == self.requirement for s in body)
        return [] if own and self.verdict.verdict == "accepted" else pattern

    def identity(self) -> dict[str, str]:
        """What a list of known findings speaks of."""
        return {
            "target": self.target, "operator": self.operator,
            "verdict": self.verdict.verdict, "signature": self.signature.removesuffix(_ONCE),
        }  # fmt: skip


def _mode(target: str) -> str:
    return describe(target).mode


def said_of(name: str, value: str) -> str:
    """What tells attributes of findings apart: a choice by its value, a number by its name."""
    return f"{name}={value}" if value.isidentifier() else name
