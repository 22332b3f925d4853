"""How much the analysis proves, and how fast, by what is known of a value (`--domain`).

    python -m bench.analysis [DIR] [--programs 200] [--witness SECONDS]

DIR is a folder of graphs with known numerical defects, as `tests.conformance.numerical` reads it;
without it, programs of the generator and the models of bench/models are measured. A point is a
place where an operation could give NaN or infinity for some argument: a function of an equation of
a call. `safe` is the share that is proved not to, for all inputs inside the ranges. With --witness,
`settled` is the share that is proved safe or for which an input was found, in so many seconds a
model.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from irlang.analysis.confirm import Frameworks
from irlang.analysis.subject import Subject, subject
from irlang.analysis.verdict import verdicts
from irlang.catalog import builtin
from irlang.commands.loading import load_subject
from irlang.diagnostics import InvalidInput
from irlang.gen.build import generate
from irlang.gen.draw import Limits
from irlang.interp.range import DOMAINS, Analysis, analyse
from irlang.interp.shape import check
from irlang.parser import parse

MODELS = Path(__file__).parent / "models"
LIMITS = Limits(elements=300, length=8)
SIZE = (5, 15)  # calls of a generated program
Key = tuple[str, str, str]  # call, equation, function


@dataclass
class Tally:
    """Of one domain: points, those that are safe, those with an input that reaches them."""

    points: int = 0
    safe: int = 0
    reached: int = 0
    seconds: list[float] = field(default_factory=list)

    def __str__(self) -> str:
        median, most = statistics.median(self.seconds), max(self.seconds)
        return (
            f"{self.safe:5} of {self.points:5} safe ({self.safe / max(self.points, 1):6.1%})   "
            f"{median:6.3f} s a model, at most {most:6.2f} s"
        )


def points(found: Analysis) -> dict[Key, bool]:
    """Whether a point is safe, in all of its regions."""
    told: dict[Key, bool] = {}
    for point in found.points:
        key = (point.node, point.tensor, point.function)
        told[key] = told.get(key, True) and point.status == "safe"
    return told


def measure(name: str, models: list[Subject], frameworks: Frameworks, witness: float) -> None:
    """Prints a line for every domain. What only one domain tells of is safe in the others."""
    tallies = {domain: Tally() for domain in DOMAINS}
    for model in models:
        told = {}
        for domain, tally in tallies.items():
            start = time.process_time()
            found = analyse(model.graph, model.catalog, domain=domain)
            tally.seconds.append(time.process_time() - start)
            told[domain] = points(found)
        every = set().union(*told.values())
        for domain, tally in tallies.items():
            unsafe = {key for key in every if not told[domain].get(key, True)}
            tally.points += len(every)
            tally.safe += len(every) - len(unsafe)
            if witness and domain == "relations" and unsafe:
                reports = verdicts(model, frameworks, seconds=witness).reports
                reached = {one.point.node for one in reports if one.status == "reachable"}
                tally.reached += sum(node in reached for node, _, _ in unsafe)
    print(f"{name}: {len(models)} models")
    for domain in reversed(DOMAINS):
        tally = tallies[domain]
        share = (tally.safe + tally.reached) / max(tally.points, 1)
        more = f"   settled {share:.1%}" if witness and domain == "relations" else ""
        print(f"  {domain:10}{tally}{more}", flush=True)


def of_folder(folder: Path, kind: str) -> Iterator[Subject]:
    """The graphs of a folder, `original` or `twin`, with the ranges that the side files say."""
    for path in sorted((folder / "json").glob("*.json")):
        side = json.loads(path.read_text("utf-8"))
        if side["kind"] == kind:
            given = (*side["inputs"], *side["parameters"])
            ranges: Mapping[str, tuple[float, float]] = {
                one["name"]: (float(one["range"][0]), float(one["range"][1])) for one in given
            }
            yield load_subject(str(folder / side["onnx"]), ranges=ranges)


def generated(count: int) -> Iterator[Subject]:
    """Programs of the generator, within the ranges that it declares."""
    catalog, seed = builtin(), 0
    while count:
        program = generate(catalog, seed, size=SIZE, limits=LIMITS)
        seed += 1
        try:
            analyse(program.graph, catalog, domain="tensor")
        except InvalidInput:
            continue  # an initialiser that cannot be read
        count -= 1
        yield subject(program.graph, catalog, text=program.text)


def model(name: str) -> Subject:
    """A model of bench/models, in single precision."""
    text = (MODELS / f"{name}.nnir").read_text("utf-8").replace("f64", "f32")
    checked = check(parse(text), builtin(), {})
    return subject(checked.graphs[0], checked.catalog, text=text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--programs", type=int, default=200)
    parser.add_argument("--witness", type=float, default=0, metavar="SECONDS")
    said = parser.parse_args()
    with Frameworks() as frameworks:
        if said.folder:
            for kind in ("original", "twin"):
                measure(
                    f"{kind}s of {said.folder.name}",
                    list(of_folder(said.folder, kind)),
                    frameworks,
                    said.witness,
                )
            return
        measure("generated", list(generated(said.programs)), frameworks, said.witness)
        for name in ("resnet50", "encoder", "lstm"):
            measure(name, [model(name)], frameworks, 0)


if __name__ == "__main__":
    main()
