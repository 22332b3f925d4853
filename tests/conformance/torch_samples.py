"""Compares the oracle with PyTorch on PyTorch's own sample inputs for its operators.

    python -m tests.conformance.torch_samples [NAME...] [--format json] [--samples K] [--jobs J]

The samples are those of `torch.testing._internal.common_methods_invocations.op_db`, of float32,
float64, int64 and bool; at most K of each operator and type, spread evenly over its list. Each is
exported (torch.export of a module that calls the operator), saved, imported from the file, checked,
and computed by the oracle. The verdict on a sample:

- agree: every result of PyTorch lies within the derived radius at the program's precision;
- disagree: one does not, or has another type or shape; or the checker refuses what was imported;
- known: one does not, and the short list KNOWN says what PyTorch computes inaccurately there;
- unsupported: the importer says that it has no translation (the reasons are counted), or the result
  has no verdict: elements that the definition leaves open, or whose radius is infinite, alone;
- not exported: torch.export itself refuses the sample. These are counted as unsupported too.

Exit status: 0 nothing disagrees, 1 something does, 2 wrong usage.
"""

from __future__ import annotations

import argparse
import io
import json
import math
import multiprocessing
import os
import re
import sys
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import numpy as np  # noqa: E402

from irlang.catalog import builtin  # noqa: E402
from irlang.diagnostics import InvalidInput  # noqa: E402
from irlang.diff.verdict import FINDINGS, Verdict, judge  # noqa: E402
from irlang.dtypes import DTYPES  # noqa: E402
from irlang.graph import Graph  # noqa: E402
from irlang.importers import torch_import  # noqa: E402
from irlang.interp.program import balls, precision  # noqa: E402
from irlang.interp.shape import check  # noqa: E402
from irlang.interp.values import initial_values, inputs  # noqa: E402
from irlang.parser import parse  # noqa: E402

Array = np.ndarray[Any, np.dtype[Any]]
TYPES = ("float32", "float64", "int64", "bool")
SAMPLES = 8
_MOST = 200_000  # elements of a sample that is computed

# What PyTorch computes less accurately than its element type allows: by operator of the exported
# program, where the oracle was confirmed by mpmath.
KNOWN = {
    "polygamma.default": "the first derivative of digamma is cut off after five terms, from 6 on: "
    "a relative error of 4e-11 in float64; near its poles it takes the sine of a rounded product",
    **dict.fromkeys(
        (f"special_bessel_{kind}{order}.default" for kind in "jy" for order in (0, 1)),
        "beyond 5 seven digits of float64, and ten between 3 and 5",
    ),
}
_UNTOLD = re.compile(r"`[^`]*`|\(in .*?\)$|\d+")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What is found of a sample. target: the operators of the exported program."""

    operator: str
    dtype: str
    number: int
    verdict: str
    reason: str = ""
    target: str = ""


def operators(names: Sequence[str] = ()) -> list[Any]:
    """The operators of PyTorch's table; all of them where none is named."""
    from torch.testing._internal.common_methods_invocations import op_db

    return [op for op in op_db if not names or label(op) in names or op.name in names]


def label(op: Any) -> str:
    """The name of an operator and its variant."""
    return f"{op.name}.{op.variant_test_name}" if op.variant_test_name else str(op.name)


def outcomes_of(op: Any, most: int, largest: float = math.inf) -> Iterator[Outcome]:
    """The verdicts on the samples of an operator.

    largest: the most elements of the input of one, where there are any that have no more.
    """
    import torch

    for name in TYPES:
        dtype = getattr(torch, name)
        if dtype not in op.supported_dtypes("cpu"):
            continue
        torch.manual_seed(0)
        np.random.seed(0)  # noqa: NPY002 -- the samples are drawn from it
        try:
            samples = list(op.sample_inputs("cpu", dtype, requires_grad=False))
        except (RuntimeError, ValueError, TypeError, AssertionError, ImportError) as error:
            yield Outcome(label(op), name, 0, "unsupported", f"no samples: {_first(error)}")
            continue
        small = [n for n, sample in enumerate(samples) if _elements(sample) <= largest]
        among = small or range(len(samples))
        for number in (among[at] for at in chosen(len(among), most)):
            verdict, reason, target = _judged(op, samples[number])
            yield Outcome(label(op), name, number, verdict, reason, target)


def _elements(sample: Any) -> int:
    tensors = sample.input if isinstance(sample.input, (list, tuple)) else [sample.input]
    return sum(tensor.numel() for tensor in tensors if hasattr(tensor, "numel"))


def chosen(count: int, most: int) -> list[int]:
    """At most so many numbers below a count, spread evenly."""
    most = min(most, count)
    return sorted({round(i * (count - 1) / max(most - 1, 1)) for i in range(most)})


def _judged(op: Any, sample: Any) -> tuple[str, str, str]:
    import torch
    from torch.utils import _pytree

    leaves, spec = _pytree.tree_flatten(((sample.input, *sample.args), sample.kwargs))
    places = [i for i, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]

    class Sample(torch.nn.Module):  # type: ignore[misc]
        def forward(self, *tensors: Any) -> Any:
            given = list(leaves)
            for place, tensor in zip(places, tensors, strict=True):
                given[place] = tensor
            args, kwargs = _pytree.tree_unflatten(given, spec)
            found = op.op(*args, **kwargs)
            # named tuples of results are no types that a file can hold
            return tuple(_pytree.tree_leaves(found))

    tensors = tuple(leaves[i].detach().clone() for i in places)
    if sum(t.numel() for t in tensors) > _MOST:
        return "unsupported", "the sample is too large", ""
    if any(t.layout != torch.strided or t.is_complex() for t in tensors):
        return "unsupported", "sparse or complex tensors", ""
    fed = [_array(t) for t in tensors]
    try:
        exported = torch.export.export(Sample().eval(), tensors)
        target = " ".join(str(n.target) for n in exported.graph.nodes if n.op == "call_function")
        file = io.BytesIO()
        torch.export.save(exported, file)
    except Exception as error:  # noqa: BLE001 -- whatever the exporter raises is its refusal
        return "unsupported", f"not exported: {type(error).__name__}", ""
    file.seek(0)
    torch.manual_seed(0)
    try:
        results = _pytree.tree_leaves(Sample().eval()(*[t.clone() for t in tensors]))
    except RuntimeError as error:  # it reads memory beyond the tensor, which a copy has not
        return "unsupported", f"PyTorch refuses it: {_first(error)}", target
    try:
        found = torch_import.load(file, "sample", data=None)
        wanted = [_array(t) for t in results if isinstance(t, torch.Tensor)]
        verdict, reason = compare(found, fed, wanted)
        return _excused(verdict, reason, target), reason, target
    except InvalidInput as error:
        return "unsupported", "; ".join(sorted({d.message for d in error.diagnostics})), target
    except Exception as error:  # noqa: BLE001 -- a traceback is a defect: reported, not raised
        return "disagree", f"crash: {_first(error)}", target


def _excused(verdict: str, reason: str, target: str) -> str:
    known = any(part.endswith(name) for part in target.split() for name in KNOWN)
    return (
        "known" if verdict == "disagree" and reason.startswith("inaccurate") and known else verdict
    )


def compare(found: torch_import.Imported, fed: list[Array], wanted: list[Array]) -> tuple[str, str]:
    """The verdict on an imported program, and why."""
    if len(wanted) != found.returned:
        return "disagree", f"{found.returned} results; PyTorch has {len(wanted)}"
    checked = check(parse(found.text, "sample.nnir"), builtin())
    errors = [d for d in checked.diagnostics if d.severity == "error"]
    if errors:
        return "disagree", f"refused: {errors[0].code}: {errors[0].message}"
    graph = checked.graphs[0]
    try:
        verdicts = judged(graph, dict(zip(found.inputs, fed, strict=True)), found.outputs, wanted)
    except InvalidInput as error:
        return "disagree", f"refused: {error}"
    worst = [v for v in verdicts if v.verdict in FINDINGS]
    if worst:
        v = worst[0]
        told = v.message or f"{v.got} for {v.expected} within {v.radius} at {list(v.index or ())}"
        return "disagree", f"{v.verdict}: {told}"
    if verdicts and all(v.verdict == "unstable" for v in verdicts):
        return "unsupported", "no verdict: every element is left open or unstable"
    return "agree", ""


def judged(
    graph: Graph, fed: dict[str, Array], names: Sequence[str], wanted: Sequence[Array]
) -> list[Verdict]:
    """The verdicts on results of a program, by their names in its order."""
    values = {**inputs(graph, 0, fed), **initial_values(graph, 0)}
    found = balls(graph, values, builtin(), precision(graph))
    return [
        judge(name, "torch", graph.values[graph.outputs[name]], found[graph.outputs[name]], array)
        for name, array in zip(names, wanted, strict=False)
    ]


def _array(tensor: Any) -> Array:
    """The elements of a tensor in NumPy's type; NumPy itself has no bfloat16."""
    import torch

    tensor = tensor.detach().resolve_neg().resolve_conj().to_dense()
    if tensor.dtype == torch.bfloat16:
        return np.array(tensor.view(torch.int16).numpy()).view(DTYPES["bf16"].numpy)
    return np.array(tensor.numpy())


def _first(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error)[:80]}".splitlines()[0]


# ---- reports


def summary(found: Sequence[Outcome]) -> dict[str, Any]:
    """What `--format json` prints."""
    counts = Counter(item.verdict for item in found)
    reasons = Counter(
        _UNTOLD.sub("…", item.reason) for item in found if item.verdict == "unsupported"
    )
    by_operator: dict[str, Counter[str]] = {}
    for item in found:
        by_operator.setdefault(item.operator, Counter())[item.verdict] += 1
    whole = [name for name, row in by_operator.items() if set(row) == {"agree"}]
    return {
        "agree": counts["agree"],
        "disagree": counts["disagree"],
        "known": counts["known"],
        "unsupported": counts["unsupported"],
        "reasons": dict(reasons.most_common()),
        "failures": [asdict(item) for item in found if item.verdict == "disagree"],
        "operators": {"all": len(by_operator), "agree": len(whole)},
    }


def report(result: dict[str, Any]) -> str:
    """The same for people."""
    lines = [f"{count:6}  {reason[:150]}" for reason, count in result["reasons"].items()]
    lines.append("")
    for item in result["failures"]:
        place = f"{item['operator']} {item['dtype']} {item['number']}"
        lines.append(f"disagree: {place}: {item['reason'][:300]}")
    lines.append(
        f"{result['agree']} samples agree, {result['disagree']} disagree, {result['known']} are "
        f"known inaccuracies of PyTorch, {result['unsupported']} "
        f"are not supported; of {result['operators']['all']} operators "
        f"{result['operators']['agree']} agree on every sample"
    )
    return "\n".join(lines)


def _part(job: tuple[int, int, int, tuple[str, ...]]) -> list[Outcome]:
    """The verdicts on a share of the operators."""
    import logging

    import torch

    warnings.filterwarnings("ignore")
    logging.disable(logging.ERROR)
    torch.set_num_threads(1)
    first, step, most, names = job
    return [item for op in operators(names)[first::step] for item in outcomes_of(op, most)]


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.conformance.torch_samples")
    parser.add_argument("names", nargs="*", metavar="NAME", help="operators (default: all)")
    parser.add_argument("--format", choices=("text", "json"), default="text")
    parser.add_argument("--samples", type=int, default=SAMPLES, help="of each operator and type")
    parser.add_argument("--jobs", type=int, default=1, help="processes (default: 1)")
    options = parser.parse_args(arguments)
    if options.samples < 1 or options.jobs < 1:
        print("--samples and --jobs must be 1 or more", file=sys.stderr)
        return 2
    jobs = [(i, options.jobs, options.samples, tuple(options.names)) for i in range(options.jobs)]
    if options.jobs == 1:
        found = _part(jobs[0])
    else:
        with multiprocessing.get_context("spawn").Pool(options.jobs) as pool:
            found = [item for part in pool.imap(_part, jobs) for item in part]
    if not found:
        print("no operator of PyTorch has such a name", file=sys.stderr)
        return 2
    result = summary(found)
    print(json.dumps(result) if options.format == "json" else report(result))
    return 1 if result["disagree"] else 0


if __name__ == "__main__":
    sys.exit(main())
