"""Steps of optimizers against PyTorch, Keras and ONNX, several in a row, in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.ops.oracle import Array, call

torch = pytest.importorskip("torch")
keras = pytest.importorskip("keras")

STEPS = 3
pytestmark = pytest.mark.filterwarnings("ignore")
# The state of each: the inputs that its results after the first are for the next step.
STATE = {
    "sgd": ("velocity",),
    "rmsprop": ("square", "mean", "velocity"),
    "adagrad": ("square",),
    "adadelta": ("square", "step_square"),
    "adam": ("mean", "square", "largest"),
    "adamax": ("mean", "largest"),
    "nadam": ("mean", "square", "product"),
    "radam": ("mean", "square"),
    "rprop": ("previous", "length"),
    "lamb": ("mean", "square"),
    "lion": ("mean",),
    "signum": ("mean",),
    "ftrl": ("square", "linear"),
}
STEPPED = ("sgd", "adagrad", "adam", "adamax", "nadam", "radam", "lamb")
# Keras rounds these to float32 on the way, which these survive (and Nadam's 0.96 does not).
BETAS = {"beta_1": 0.75, "beta_2": 0.875}
SHORT = {"betas": (0.9, 0.75)}
# Steps by number: the definition, its attributes, the class of PyTorch or Keras, its arguments.
TORCH: list[tuple[str, dict[str, Any], str, dict[str, Any]]] = [
    ("sgd", {}, "SGD", {}),
    ("sgd", {"weight_decay": 0.25}, "SGD", {"weight_decay": 0.25}),
    ("sgd", {"momentum": 0.75}, "SGD", {"momentum": 0.75}),
    ("sgd", {"momentum": 0.75, "dampening": 0.5}, "SGD", {"momentum": 0.75, "dampening": 0.5}),
    ("sgd", {"momentum": 0.75, "nesterov": True}, "SGD", {"momentum": 0.75, "nesterov": True}),
    ("rmsprop", {}, "RMSprop", {}),
    ("rmsprop", {"rho": 0.75, "momentum": 0.5}, "RMSprop", {"alpha": 0.75, "momentum": 0.5}),
    ("rmsprop", {"rho": 0.75, "centered": True}, "RMSprop", {"alpha": 0.75, "centered": True}),
    ("adagrad", {}, "Adagrad", {}),
    (
        "adagrad",
        {"lr_decay": 0.25, "weight_decay": 0.125},
        "Adagrad",
        {"lr_decay": 0.25, "weight_decay": 0.125},
    ),
    ("adadelta", {}, "Adadelta", {}),
    ("adam", {}, "Adam", {}),
    ("adam", {"amsgrad": True}, "Adam", {"amsgrad": True}),
    ("adam", {"weight_decay": 0.25}, "Adam", {"weight_decay": 0.25}),
    ("adam", {"weight_decay": 0.25, "decoupled": True}, "AdamW", {"weight_decay": 0.25}),
    ("adamax", {}, "Adamax", {}),
    ("nadam", {}, "NAdam", {}),
    ("radam", {}, "RAdam", {}),
    ("radam", {"beta_2": 0.75, "weight_decay": 0.25}, "RAdam", {**SHORT, "weight_decay": 0.25}),
    (
        "radam",
        {"beta_2": 0.875, "weight_decay": 0.25, "decoupled": True},
        "RAdam",
        {"betas": (0.9, 0.875), "weight_decay": 0.25, "decoupled_weight_decay": True},
    ),
    ("rprop", {}, "Rprop", {}),
    ("rprop", {"grows": 3, "most": 0.5}, "Rprop", {"etas": (0.5, 3), "step_sizes": (1e-6, 0.5)}),
]
KERAS: list[tuple[str, dict[str, Any], str, dict[str, Any]]] = [
    ("sgd", {"weight_decay": 0.25, "decoupled": True}, "SGD", {"weight_decay": 0.25}),
    ("sgd", {"momentum": 0.75, "velocity_of": "steps"}, "SGD", {"momentum": 0.75}),
    (
        "sgd",
        {"momentum": 0.75, "velocity_of": "steps", "nesterov": True},
        "SGD",
        {"momentum": 0.75, "nesterov": True},
    ),
    ("rmsprop", {"rho": 0.75, "eps": 1e-7, "eps_to": "square"}, "RMSprop", {"rho": 0.75}),
    (
        "rmsprop",
        {"rho": 0.75, "eps": 1e-7, "eps_to": "square", "momentum": 0.5, "velocity_of": "steps"},
        "RMSprop",
        {"rho": 0.75, "momentum": 0.5},
    ),
    (
        "rmsprop",
        {"rho": 0.75, "eps": 1e-7, "eps_to": "square", "centered": True},
        "RMSprop",
        {"rho": 0.75, "centered": True},
    ),
    ("adagrad", {"eps": 1e-7, "eps_to": "square"}, "Adagrad", {}),
    ("adadelta", {"rho": 0.75, "eps": 1e-7}, "Adadelta", {"rho": 0.75}),
    ("adam", {**BETAS, "eps": 1e-7, "eps_to": "raw"}, "Adam", BETAS),
    (
        "adam",
        {**BETAS, "eps": 1e-7, "eps_to": "raw", "amsgrad": True},
        "Adam",
        {**BETAS, "amsgrad": True},
    ),
    (
        "adam",
        {**BETAS, "eps": 1e-7, "eps_to": "raw", "weight_decay": 0.25, "decoupled": True},
        "AdamW",
        {**BETAS, "weight_decay": 0.25},
    ),
    ("adamax", {**BETAS, "eps": 1e-7, "eps_to": "largest"}, "Adamax", BETAS),
    ("lamb", {**BETAS, "eps": 1e-7}, "Lamb", BETAS),
    (
        "lamb",
        {**BETAS, "eps": 1e-7, "weight_decay": 0.25, "decoupled": True},
        "Lamb",
        {**BETAS, "weight_decay": 0.25},
    ),
    ("lion", {**BETAS, "weight_decay": 0.25}, "Lion", {**BETAS, "weight_decay": 0.25}),
    ("ftrl", {}, "Ftrl", {}),
    (
        "ftrl",
        {"l1": 0.25, "l2": 0.5, "shrinkage": 0.125, "beta": 0.75, "lr_power": -0.75},
        "Ftrl",
        {
            "l1_regularization_strength": 0.25,
            "l2_regularization_strength": 0.5,
            "l2_shrinkage_regularization_strength": 0.125,
            "beta": 0.75,
            "learning_rate_power": -0.75,
        },
    ),
]
FIRST = {
    "adagrad": {"square": 0.1},
    "ftrl": {"square": 0.1},
}  # what Keras's state begins with, where it is not zero


class Steps:
    """Steps of a definition in a row; the state is the float64 nearest to the true one."""

    def __init__(self, op: str, x: Array, attrs: dict[str, Any], lr: float) -> None:
        self.op, self.x, self.attrs, self.lr = op, x, attrs, np.array(lr)
        self.state: dict[str, Array] = {}
        self.count = 0

    def __call__(self, gradient: Array) -> Any:
        """The new parameter, with its radius."""
        self.count += 1
        inputs = {"x": self.x, "gradient": gradient, **self.state}
        if self.op != "rprop":
            inputs["lr"] = self.lr
        if self.op in STEPPED:
            inputs["step"] = np.array(self.count)
        found = call(self.op, inputs, **self.attrs)
        y, *kept = found.values()
        self.state = {n: r.value for n, r in zip(STATE[self.op], kept, strict=True)}
        self.x = y.value
        return y


@pytest.mark.parametrize(("op", "attrs", "kind", "options"), TORCH)
@settings(max_examples=3)
@given(data=st.data())
def test_steps_are_those_of_torch(
    op: str, attrs: dict[str, Any], kind: str, options: dict[str, Any], data: st.DataObject
) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 999)))
    shape = data.draw(st.lists(st.integers(1, 3), max_size=2))
    x = rng.uniform(-2, 2, shape)
    steps = Steps(op, x, attrs, 0.25)
    if op == "rprop":
        steps.state["length"] = np.full(shape, 0.25)  # as long as the rate, at first
    for count in range(1, STEPS + 1):
        gradient = rng.uniform(-2, 2, shape)
        native = torch.nn.Parameter(torch.tensor(steps.x))
        optimizer = getattr(torch.optim, kind)([native], lr=0.25, foreach=False, **options)
        _in_torch(optimizer, native, op, steps.state, count)
        native.grad = torch.tensor(gradient)
        optimizer.step()
        steps(gradient).check(native.detach().numpy())


@pytest.mark.parametrize("square", [-1.0, np.nan, 1.0])
def test_a_root_that_has_no_part_in_a_step_may_have_none(square: float) -> None:
    """PyTorch's foreach multiplies what is made of it by 0, and its loop leaves it out."""
    state = {"square": np.array([square]), "step": np.array(1)}
    given_ = {"x": np.array([1.0]), "gradient": np.array([0.25]), **state}
    radius = call("radam", given_)["y"].radius
    assert np.isinf(radius).all() == (not square >= 0)


_TORCH_STATE = {
    "sgd": {"velocity": "momentum_buffer"},
    "rmsprop": {"square": "square_avg", "mean": "grad_avg", "velocity": "momentum_buffer"},
    "adagrad": {"square": "sum"},
    "adadelta": {"square": "square_avg", "step_square": "acc_delta"},
    "adam": {"mean": "exp_avg", "square": "exp_avg_sq", "largest": "max_exp_avg_sq"},
    "adamax": {"mean": "exp_avg", "largest": "exp_inf"},
    "nadam": {"mean": "exp_avg", "square": "exp_avg_sq", "product": "mu_product"},
    "radam": {"mean": "exp_avg", "square": "exp_avg_sq"},
    "rprop": {"previous": "prev", "length": "step_size"},
}


@pytest.fixture(autouse=True)
def in_float64() -> Any:
    """What PyTorch keeps as a number of its own, as NAdam's product, has the default type."""
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def _in_torch(optimizer: Any, native: Any, op: str, state: dict[str, Array], count: int) -> None:
    """Puts our state into PyTorch's optimizer, so that every step begins with the same numbers."""
    if count == 1:
        return
    there = {_TORCH_STATE[op][name]: torch.tensor(value) for name, value in state.items()}
    optimizer.state[native].update({**there, "step": torch.tensor(float(count - 1))})


@pytest.mark.parametrize(("op", "attrs", "kind", "options"), KERAS)
@settings(max_examples=2, deadline=None)
@given(data=st.data())
def test_steps_are_those_of_keras(
    op: str, attrs: dict[str, Any], kind: str, options: dict[str, Any], data: st.DataObject
) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 999)))
    shape = data.draw(st.lists(st.integers(1, 3), max_size=2))
    steps = Steps(op, rng.uniform(-2, 2, shape), attrs, 0.25)
    steps.state = {n: np.full(shape, v) for n, v in FIRST.get(op, {}).items()}
    variable = keras.Variable(steps.x, dtype="float64")
    optimizer = getattr(keras.optimizers, kind)(learning_rate=0.25, **options)
    optimizer.build([variable])
    for _ in range(STEPS):
        gradient = rng.uniform(-2, 2, shape)
        variable.assign(steps.x)
        _in_keras(optimizer, op, steps)
        optimizer.apply([keras.ops.convert_to_tensor(gradient)], [variable])
        steps(gradient).check(np.asarray(variable))


def _in_keras(optimizer: Any, op: str, steps: Steps) -> None:
    """Puts our state into Keras's optimizer."""
    names = {
        "sgd": {"velocity": "momentums"},
        "rmsprop": {
            "square": "_velocities",
            "mean": "_average_gradients",
            "velocity": "_momentums",
        },
        "adagrad": {"square": "_accumulators"},
        "adadelta": {"square": "_accumulated_grads", "step_square": "_accumulated_delta_vars"},
        "adam": {"mean": "_momentums", "square": "_velocities", "largest": "_velocity_hats"},
        "adamax": {"mean": "_m", "largest": "_u"},
        "lamb": {"mean": "_momentums", "square": "_velocities"},
        "lion": {"mean": "_momentums"},
        "ftrl": {"square": "_accumulators", "linear": "_linears"},
    }[op]
    for name, value in steps.state.items():
        there: Any = getattr(optimizer, names[name], None)
        if isinstance(there, list) and there:
            there[0].assign(value)
        elif hasattr(there, "assign"):
            there.assign(value)


def test_nadam_as_keras_has_it() -> None:
    """Its formula in NumPy."""
    rng = np.random.default_rng(3)
    x, b1, b2, eps = rng.uniform(-2, 2, 3), 0.9, 0.999, 1e-7
    steps = Steps("nadam", x, {"eps": eps, "momentum_decay": 1}, 0.25)
    m, v, product = np.zeros(3), np.zeros(3), np.ones(())
    for t in range(1, STEPS + 1):
        g = rng.uniform(-2, 2, 3)
        now, after = (b1 * (1 - 0.5 * 0.96**n) for n in (t, t + 1))
        product = product * now
        m, v = m + (g - m) * (1 - b1), v + (g * g - v) * (1 - b2)
        ahead = after * m / (1 - product * after) + (1 - now) * g / (1 - product)
        x = steps.x - 0.25 * ahead / (np.sqrt(v / (1 - b2**t)) + eps)
        steps(g).check(x)
        m, v, product = (steps.state[name] for name in STATE["nadam"])


def test_signum_by_its_formula() -> None:
    rng = np.random.default_rng(5)
    x = rng.uniform(-2, 2, 4)
    coupled = Steps("signum", x, {"momentum": 0.75, "weight_decay": 0.5}, 0.25)
    apart = Steps("signum", x, {"momentum": 0.75, "weight_decay": 0.5, "decoupled": True}, 0.25)
    means = [np.zeros(4), np.zeros(4)]
    for _ in range(STEPS):
        g = rng.uniform(-2, 2, 4)
        means[0] = 0.75 * means[0] + 0.25 * (g + 0.5 * coupled.x)
        means[1] = 0.75 * means[1] + 0.25 * g
        expected = coupled.x - 0.25 * np.sign(means[0])
        coupled(g).check(expected)
        expected = apart.x * (1 - 0.125) - 0.25 * np.sign(means[1])
        apart(g).check(expected)


def test_lamb_as_mxnet_has_it() -> None:
    """With what weight decay adds in the length of the step, without correction: NumPy."""
    rng = np.random.default_rng(6)
    x, g = rng.uniform(-2, 2, 5), rng.uniform(-2, 2, 5)
    m, v = 0.25 * g, 0.125 * g * g
    moved = m / (np.sqrt(v) + 0.5) + 0.25 * x
    ratio = np.linalg.norm(x) / np.linalg.norm(moved)
    attrs = {"beta_1": 0.75, "beta_2": 0.875, "eps": 0.5, "weight_decay": 0.25}
    given_ = {"x": x, "gradient": g, "lr": np.array(0.125)}
    call("lamb", given_, bias_correction=False, **attrs)["y"].check(x - 0.125 * ratio * moved)
    for still in ({"x": np.zeros(5)}, {"gradient": np.zeros(5)}):
        attrs["weight_decay"] = 0
        given_ = {"x": x, "gradient": g, "lr": np.array(0.125), **still}
        step = 0.25 * given_["gradient"] / (np.sqrt(0.125) * np.abs(given_["gradient"]) + 0.5)
        found = call("lamb", given_, bias_correction=False, **attrs)["y"]
        found.check(given_["x"] - 0.125 * step)


# ---- ONNX, whose reference computes in the type of its inputs


@pytest.mark.parametrize("count", [0, 1, 2])
def test_steps_of_onnx(count: int) -> None:
    """`T` is the number of steps before this one."""
    onnx = pytest.importorskip("onnx")
    from onnx.reference import ReferenceEvaluator

    rng = np.random.default_rng(count)
    x, g, v, h = (rng.uniform(-2, 2, (2, 2)) for _ in range(4))
    h, rate = np.abs(h), np.array(0.25)

    def native(op: str, state: tuple[Array, ...], **attrs: Any) -> list[Array]:
        node = onnx.helper.make_node(
            op, ["R", "T", *(f"i{i}" for i in range(2 + len(state)))],
            [f"o{i}" for i in range(1 + len(state))], domain="ai.onnx.preview.training", **attrs,
        )  # fmt: skip
        feeds = {
            "R": rate,
            "T": np.array(count),
            **{f"i{i}": a for i, a in enumerate((x, g, *state))},
        }
        inputs = [
            onnx.helper.make_tensor_value_info(
                name, onnx.helper.np_dtype_to_tensor_dtype(a.dtype), a.shape
            )
            for name, a in feeds.items()
        ]
        outputs = [onnx.helper.make_empty_tensor_value_info(name) for name in node.output]
        graph = onnx.helper.make_graph([node], "g", inputs, outputs)
        opsets = [onnx.helper.make_opsetid("ai.onnx.preview.training", 1)]
        model = onnx.helper.make_model(graph, opset_imports=opsets)
        return list(ReferenceEvaluator(model).run(None, feeds))

    given_ = {"x": x, "gradient": g, "lr": rate}
    step = {"step": np.array(count + 1)}
    for nesterov in (False, True):
        mode = "nesterov" if nesterov else "standard"
        found = native("Momentum", (v,), alpha=0.75, beta=0.5, norm_coefficient=0.125, mode=mode)
        ours = call(
            "sgd", {**given_, **step, "velocity": v}, momentum=0.75, dampening=0.5,
            weight_decay=0.125, nesterov=nesterov,
        )  # fmt: skip
        for result, other in zip(ours.values(), found, strict=True):
            result.check(other)
    found = native("Adagrad", (h,), decay_factor=0.25, norm_coefficient=0.125, epsilon=0.0625)
    ours = call(
        "adagrad", {**given_, **step, "square": h}, lr_decay=0.25, weight_decay=0.125, eps=0.0625
    )
    for result, other in zip(ours.values(), found, strict=True):
        result.check(other)
    found = native("Adam", (v, h), alpha=0.75, beta=0.875, epsilon=0.0625, norm_coefficient=0.125)
    counted = {"step": np.array(count)} if count else {}
    ours = call(
        "adam", {**given_, **counted, "mean": v, "square": h}, beta_1=0.75, beta_2=0.875,
        weight_decay=0.125, eps=0.0625, eps_to="raw", bias_correction=count > 0,
    )  # fmt: skip
    for result, other in zip(list(ours.values())[:3], found, strict=True):
        result.check(other)


@pytest.mark.parametrize("op", ["adam", "adamax", "nadam", "rmsprop"])
def test_nothing_is_said_of_infinite_means(op: str) -> None:
    """torch.lerp adds a share of the difference, which is NaN between two infinities."""
    assert torch.lerp(torch.tensor(np.inf), torch.tensor(1.0), 0.1).isnan()
    assert torch.lerp(torch.tensor(1.0), torch.tensor(np.inf), 0.9).isnan()
    arrays = {
        "x": np.ones(3), "gradient": np.array([1, np.inf, 1]), "mean": np.array([np.inf, 1, 1]),
    }  # fmt: skip
    attrs = {"centered": True} if op == "rmsprop" else {}
    results = call(op, {**arrays, "square": np.full(3, 4.0)} if op != "adamax" else arrays, **attrs)
    for name in ("y", "new_mean"):
        assert list(np.isinf(results[name].radius)) == [True, True, False]
