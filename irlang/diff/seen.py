"""What has been looked into already, so that one fault does not take the time of all others.

A fault that is everywhere is met by program after program; those are counted and not all taken
apart. What is remembered is what has been looked into: a disagreement for which a batch has no room
left is as new as before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from irlang.diff.found import Found, said_of
from irlang.diff.reduce import number_kinds
from irlang.diff.verdict import Verdict, at_edge, reason_of
from irlang.graph import Graph, Node
from irlang.lower.target import describe
from irlang.scope import show

_LEARNT = 2  # times that a culprit has been met which another process has looked into
_BEHIND = 6  # calls of an operator in which others than the worst element are looked for
_SAME = 2  # refusals for one reason that are looked into
_COMPOSED = ", composed"
_OF_NUMBERS = ("inaccurate", "edge", "nonfinite", "wrong")  # from the least to the gravest

Symptom: TypeAlias = tuple[str, str, str, str, str, str]
# The calls that are wrong, each an operator with the attributes that a reduction has left to it.
Calls: TypeAlias = tuple[tuple[str, frozenset[str]], ...]
# What a process knows: its culprits by target, verdict and calls, and its symptoms.
Known: TypeAlias = tuple[frozenset[tuple[str, str, Calls]], frozenset[Symptom]]


@dataclass(slots=True)
class Seen:
    """What one process has looked into.

    culprits: by target, verdict and calls, how many programs hold them since. refusals: by target
    and reason, how often there was room for one. symptoms: of calls at the edges of their types.
    behind: by target and operator, how often it was looked for others in a call that is wrong.
    patterns: by target, verdict and operators, how often such calls were wrong together.
    """

    culprits: Counter[tuple[str, str, Calls]] = field(default_factory=Counter)
    refusals: Counter[tuple[str, str]] = field(default_factory=Counter)
    symptoms: set[Symptom] = field(default_factory=set)
    behind: Counter[tuple[str, str]] = field(default_factory=Counter)
    patterns: Counter[tuple[str, str, tuple[str, ...]]] = field(default_factory=Counter)

    def clear(self) -> None:
        """Forgets all."""
        self.culprits.clear()
        self.refusals.clear()
        self.symptoms.clear()
        self.behind.clear()
        self.patterns.clear()

    def known(self) -> Known:
        """What has been looked into, for other processes to `learn`."""
        return frozenset(self.culprits), frozenset(self.symptoms)

    def learn(self, known: Known) -> None:
        """Takes over what another process has looked into, a culprit as met twice."""
        for culprit in known[0]:
            self.culprits.setdefault(culprit, _LEARNT)
        self.symptoms |= known[1]

    def knows(self, symptom: Symptom) -> bool:
        """Whether a symptom has been looked into, or what is as grave and alike in all else."""
        target, verdict, *rest = symptom
        if verdict not in _OF_NUMBERS:
            return symptom in self.symptoms
        graver = _OF_NUMBERS[_OF_NUMBERS.index(verdict) :]
        return any((target, one, *rest) in self.symptoms for one in graver)

    def note(self, found: Found) -> None:
        """Remembers the calls that a finding blames, and those that are composed of them."""
        for one in (found, found.within):
            if one is not None:
                held = calls_of(one.operator, one.attributes)
                self.culprits.setdefault((one.target, one.verdict.verdict, held), 1)

    def explains(
        self, graph: Graph, target: str, verdict: str, share: float = 0.0, together: bool = False
    ) -> bool:
        """Whether a program that disagrees holds a known culprit; counts it.

        Of those that hold it the second is looked into, the fourth and so on: an operator may have
        several faults, and what is often at fault stands beside others. One whose calls lack an
        attribute that the known fault needs has another. share: of a program's calls that calls
        which are wrong together must be at least to explain it: what is wrong with a product and a
        quotient says little of a normalisation that has these among its parts. together: whether
        every call is known to be right by what it was fed, so that what is wrong with one call
        explains nothing; but what the same operators have shown together does.
        """
        held = [
            culprit
            for culprit in self.culprits
            if culprit[:2] == (target, verdict)
            and _holds(graph, culprit[2])
            and _says_of(culprit[2], graph, share, together)
        ]
        self.culprits.update(held)
        if together:
            called = target, verdict, tuple(sorted(node.op.name for node in graph.nodes))
            self.patterns[called] += 1
            if self.patterns[called] & (self.patterns[called] - 1):
                return True
        return bool(held) and all(self.culprits[one] & (self.culprits[one] - 1) for one in held)

    def looks_behind(self, target: str, operator: str) -> bool:
        """Whether there may be other disagreements in a call that is wrong; counts it.

        A target that is too slow for all programs of a campaign is not asked again and again.
        """
        self.behind[target, operator] += 1
        return self.behind[target, operator] <= max(1, _BEHIND // describe(target).share)

    def heard(self, target: str, verdicts: Sequence[Verdict]) -> bool:
        """Whether a target has refused so often for this reason as is looked into; counts it.

        An optimiser that breaks many programs in one way says the same of all of them, whichever
        operators are around.
        """
        reason = _reason(target, verdicts)
        self.refusals[reason] += bool(reason[1])
        return self.refusals[reason] > _SAME

    def unheard(self, target: str, verdicts: Sequence[Verdict]) -> bool:
        """Whether a target refuses for a reason that has not been looked into: what is known of
        calls that it refuses for others does not explain it.
        """
        reason = _reason(target, verdicts)
        return bool(reason[1]) and not self.refusals[reason]


def _reason(target: str, verdicts: Sequence[Verdict]) -> tuple[str, str]:
    """A target and why it refuses, empty where it does not."""
    said = next((v.message for v in verdicts if v.verdict == "refused"), "")
    return target, reason_of(said)


def symptom_of(
    target: str, operator: str, verdict: Verdict, edge: bool, composed: bool = False
) -> Symptom:
    """What is known of a defect before it is reduced: enough not to look into it twice.

    edge: whether it was fed with values at the edges of their types, where a wrong number says
    nothing of one by usual values, as a few digits less do not of a wrong number. composed: whether
    the target has the call as several operators: what is wrong with one of these says nothing of
    the operator that it has for other calls.
    """
    kinds = number_kinds(verdict.expected, verdict.got)
    said = at_edge(verdict.verdict) if edge else verdict.verdict
    return target, said, operator + _COMPOSED * composed, verdict.stage, *kinds


def calls_of(operator: str, attributes: Mapping[str, str]) -> Calls:
    """The calls of a culprit, from its name and attributes as a finding has them."""
    wanted: dict[str, list[str]] = {name: [] for name in operator.split(" + ")}
    for key, value in attributes.items():
        name, _, attribute = key.rpartition(".")
        wanted.setdefault(name or operator, []).append(said_of(attribute, value))
    return tuple((name, frozenset(said)) for name, said in sorted(wanted.items()))


def _holds(graph: Graph, wanted: Calls) -> bool:
    """Whether a program has each of some calls."""
    return all(
        any(node.op.name == name and said.issubset(_all_said(node)) for node in graph.nodes)
        for name, said in wanted
    )


def _says_of(calls: Calls, graph: Graph, share: float, together: bool) -> bool:
    """Whether a culprit that a program holds says something of it: see `Seen.explains`."""
    return not together if len(calls) == 1 else len(calls) >= share * len(graph.nodes)


def _all_said(node: Node) -> Iterable[str]:
    return (said_of(name, show(value)) for name, value in node.attrs.items())


SEEN = Seen()  # by this process
