"""Faults planted into PyTorch's optimizers: which are met by three steps of a small model.

`python -m tests.planted_steps [MODELS]` measures all of them.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

import irlang
from irlang.diff.calls import Case
from irlang.diff.runner import Session
from irlang.diff.training import optimizer, train
from irlang.diff.verdict import FINDINGS
from irlang.interp.values import initial_values, inputs
from tests.planted_kinds import Kind, lowered_by, planted

_MODEL = """nnir 1
model m(x: f32[5, 4] in [-1, 1], t: i64[5] in [0, 2]) -> p: f32[5, 3] {
  param w: f32[4, 6] in [-1, 1]
  param b: f32[6] in [-1, 1]
  param v: f32[6, 3] in [-1, 1]
  p = softmax(dense(tanh(dense(x, w, b)), v))
  loss = cross_entropy(log(p), t)
}
"""


@dataclass(frozen=True, slots=True)
class Step:
    """A fault of an optimizer, and the settings by which steps are taken."""

    settings: str
    name: str
    code: str


def _off(name: str, factor: str = "(1 + 1e-4)") -> str:
    return f"options['{name}'] = options['{name}'] * {factor}\n    return right(*args, **options)"


_SGD = "sgd(lr = 0.1, momentum = 0.9, weight_decay = 0.01)"
_NESTEROV = "sgd(lr = 0.1, momentum = 0.9, nesterov = true)"
_ADAM = "adam(lr = 0.01, weight_decay = 0.01)"
_ADAMW = "adam(lr = 0.01, weight_decay = 0.01, decoupled = true)"

# Changes what an optimizer does in `step`: `before(group, p)` and `after(group, p, old)`.
_AROUND = """
    made = right(*args, **options)
    step = made.step
    def changed():
        group = made.param_groups[0]
        (p,) = group["params"]
        old = p.detach().clone()
        {before}
        step()
        {after}
    made.step = changed
    return made
"""


def _around(before: str = "pass", after: str = "pass") -> str:
    return _AROUND.format(before=before, after=after)


STEPS = {
    "a rate off by 1e-5": Step(_SGD, "SGD", _off("lr", "(1 + 1e-5)")),
    "a momentum off by 1e-4": Step(_SGD, "SGD", _off("momentum")),
    "no weight decay": Step(
        _SGD, "SGD", "options['weight_decay'] = 0.0\n    return right(*args, **options)"
    ),
    "a weight decay off by 1e-3": Step(_SGD, "SGD", _off("weight_decay", "1.001")),
    "no look ahead": Step(
        _NESTEROV, "SGD", "options['nesterov'] = False\n    return right(*args, **options)"
    ),
    "a look ahead": Step(
        _SGD, "SGD", "options['nesterov'] = True\n    return right(*args, **options)"
    ),
    "dampening as momentum says": Step(
        _SGD, "SGD", "options['dampening'] = 1 - 0.9\n    return right(*args, **options)"
    ),
    "a decay of the parameter after the step": Step(
        _SGD, "SGD",
        "options['weight_decay'] = 0.0\n"
        + _around(after="p.data.sub_(old * group['lr'] * 0.01)").lstrip("\n"),
    ),
    "a decay that is decoupled": Step(
        _ADAM, "Adam", "return torch.optim.AdamW(*args, **options)"
    ),
    "a decay that is not decoupled": Step(
        _ADAMW, "AdamW", "return torch.optim.Adam(*args, **options)"
    ),
    "a step counted from 0 to 1 twice": Step(
        _ADAM, "Adam",
        _around(before="s = made.state[p]; s and s['step'].add_(1)"),
    ),
    "no correction of the second mean": Step(
        _ADAM, "Adam",
        _around(after="""s = made.state[p]; n = s['step'].item()
        b1, b2 = group['betas']; m = s['exp_avg'] / (1 - b1 ** n)
        p.data.copy_(old - group['lr'] * m / (s['exp_avg_sq'].sqrt() + group['eps']))"""),
    ),
    "an epsilon below the root": Step(
        "rmsprop(lr = 0.01)", "RMSprop",
        _around(after="""s = made.state[p]
        p.data.copy_(old - group['lr'] * p.grad / (s['square_avg'] + group['eps']).sqrt())"""),
    ),
    "betas that are swapped": Step(
        _ADAM, "Adam",
        "options['betas'] = options['betas'][::-1]\n    return right(*args, **options)",
    ),
    "a second beta off by 1e-4": Step(
        _ADAM, "Adam",
        "b = options['betas']\n    options['betas'] = (b[0], b[1] * (1 - 1e-4))\n"
        "    return right(*args, **options)",
    ),
    "no largest of the second means": Step(
        "adam(lr = 0.01, amsgrad = true)", "Adam",
        "options['amsgrad'] = False\n    return right(*args, **options)",
    ),
    "a rate that does not decay": Step(
        "adagrad(lr = 0.1, lr_decay = 0.1)", "Adagrad",
        "options['lr_decay'] = 0.0\n    return right(*args, **options)",
    ),
    "a decay of momentum off by a tenth": Step(
        "nadam(lr = 0.01)", "NAdam", _off("momentum_decay", "1.1")
    ),
    "a largest that forgets nothing": Step(
        "adamax(lr = 0.01)", "Adamax",
        "options['betas'] = (options['betas'][0], 1 - 1e-6)\n    return right(*args, **options)",
    ),
    "a rho off by 1e-4": Step("adadelta(lr = 1.0)", "Adadelta", _off("rho", "(1 - 1e-4)")),
}  # fmt: skip


def case(seed: int) -> Case:
    """A small model with a loss, and what it is fed."""
    made = irlang.loads(_MODEL)
    graph = made.graph
    return Case(graph, inputs(graph, seed), initial_values(graph, seed), made.catalog)


def caught(settings: str, seed: int, session: Session) -> list[str]:
    """The verdicts against PyTorch of three steps."""
    given = case(seed)
    made = optimizer(settings, given.catalog)
    outcome = session.compare([given], grad=True)[0]
    found = train(session, given, "torch", made, 3, outcome)
    assert any(verdict.stage == "step" for verdict in found), found
    return [v.name for v in found if v.verdict in FINDINGS]


def measure(name: str, models: int) -> list[list[str]]:
    """What speaks against PyTorch with a fault, of some models."""
    step = STEPS[name]
    kind = Kind("", (f"torch.optim.{step.name}",), step.code)
    with Session(["torch"]) as session, lowered_by(planted(kind)):
        return [caught(step.settings, seed, session) for seed in range(models)]


def main() -> None:
    """Prints a line for every fault."""
    models = int(sys.argv[1]) if sys.argv[1:] else 3
    for name in STEPS:
        found = measure(name, models)
        with Session(["torch"]) as session:
            false = sum(bool(caught(STEPS[name].settings, s, session)) for s in range(models))
        first = [names[0] for names in found if names]
        sys.stdout.write(f"{name:44} {len(first)} of {models}, without it {false}; {set(first)}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
