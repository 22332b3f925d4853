"""What a target is handed of a spoilt call: its own operator, with the fault as it is, or not."""

from __future__ import annotations

import functools
import resource
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import pytest

from irlang.catalog import builtin
from irlang.diff import handed
from irlang.diff.handed import Programs, is_handed_over, is_telling
from irlang.diff.invalid import (
    judge_invalid,
)
from irlang.diff.runner import Case, Session
from irlang.gen.changes import (
    Resize,
    SetElements,
)  # fmt: skip
from irlang.gen.fed import fed
from irlang.gen.judge import judge
from irlang.gen.moves import Retype, SetAttr
from irlang.gen.smaller import smaller
from irlang.gen.spoil import breakable, breaks, spoils, spoilt
from irlang.gen.spoilt import RULED_OUT, Spoilt, spoilt_call, types_of
from irlang.interp.program import run
from irlang.interp.shape import check
from irlang.interp.values import inputs
from irlang.lower.admits import admitted, fixed
from irlang.lower.direct import is_direct, lists, numbers, says, takes_as_it_is
from irlang.lower.lower import Lowered, lower, spelt
from irlang.lower.manner import Manner
from irlang.lower.narrows import narrower
from irlang.parser import parse
from tests.spoilt_calls import SEEDS, text_of, wanted_of

pytest.importorskip("torch", reason="torch is not installed")


def lowered(text: str, target: str = "torch", hollow: bool = False) -> Lowered:
    (graph,) = check(parse(f"nnir 1\nmodel m{text}"), builtin()).graphs
    return lower(graph, target, builtin(), {}, hollow=hollow)


def test_one_operator_with_its_arguments_as_they_are_is_direct() -> None:
    assert is_direct(lowered("(x: f32[2, 3]) -> y: f32[2, 3] { y = softplus(x) }"))
    assert not is_direct(lowered("(x: f32[2, 3]) -> y: f32[2, 3] { y = softplus(relu(x)) }"))
    composed = (
        "(x: f32[1, 1, 8], w: f32[1, 1, 3]) -> y: f32[1, 1, 8] { y = conv(x, w; before = 2) }"
    )
    assert not is_direct(lowered(composed.replace("before", "pad = given, before")))


def test_pairs_of_real_numbers_around_a_complex_operator_hand_its_arguments_over() -> None:
    """Where a number is the matter; of their own shapes it is the pairs that say no."""
    text = "model m(x: f32[2, 6, 2]) -> y: f32[2, 4, 2] {\n  y = dft(x; axis = 1, length = 4)\n}"
    graph = check(parse(f"nnir 1\n{text}"), builtin()).graphs[0]
    lowered = lower(graph, "torch", builtin(), {}, whole=False)
    assert is_direct(lowered, shaped=True)
    assert not is_direct(lowered)


def test_what_is_filled_up_with_one_number_leaves_an_operator_alone() -> None:
    """A bias beside that of the state, of which ONNX has one, and what was found in its room."""
    pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    layer = (
        "(x: f32[2, 1, 3], w: f32[4, 3], r: f32[4, 4], b: f32[4]) -> y: f32[2, 1, 4] "
        "{ y, h = simple_rnn(x, w, r, b; clip = 0.5) }"
    )
    assert is_direct(lowered(layer, "onnxruntime"), shaped=True)
    found = "(x: f32[3], keep: bool[3]) -> y: f32[2] { y = compress(x, keep; size = 2) }"
    assert is_direct(lowered(found, "onnxruntime"))
    joined = "(x: f32[3], z: f32[2]) -> y: f32[5] { y = concat(relu(x), z; axis = 0) }"
    assert not is_direct(lowered(joined, "onnxruntime"), shaped=True)


def test_a_loss_that_is_averaged_beside_it_is_an_operator_alone_where_something_is_refused() -> (
    None
):
    pytest.importorskip("tensorflow", reason="TensorFlow is not installed")
    text = "(x: f32[4, 3], t: i32[4]) -> y: f32[] { y = cross_entropy(x, t) }"
    assert is_direct(lowered(text, "tf"), gathered=True)
    assert not is_direct(lowered(text, "tf"))
    twice = "(x: f32[4, 3], t: i32[4]) -> y: f32[] { y = cross_entropy(relu(x), t) }"
    assert not is_direct(lowered(twice, "tf"), gathered=True)


def test_gates_in_another_order_are_an_operator_alone_for_its_numbers() -> None:
    text = (
        "(x: f32[2, 1, 3], w: f32[3, 4, 3], r: f32[3, 4, 4], b: f32[3, 4]) -> y: f32[2, 1, 4] "
        "{ y, h = gru(x, w, r, b; reset_after = true) }"
    )
    gates = lowered(text)
    assert is_direct(gates, shaped=True, ordered=True)
    assert not is_direct(gates, shaped=True)


def test_what_is_said_is_the_same_whatever_the_shapes() -> None:
    one = lowered("(x: f32[2, 3]) -> y: f32[2, 3] { y = softplus(x; beta = 2) }")
    wide = lowered("(x: f32[9]) -> y: f32[9] { y = softplus(x; beta = 2) }")
    other = lowered("(x: f32[2, 3]) -> y: f32[2, 3] { y = softplus(x; beta = 3) }")
    assert says(one) == says(wide) != says(other)


def test_parts_of_negative_sizes_are_handed_over() -> None:
    """TensorFlow 2.4 dies of one."""
    programs = Programs(builtin())
    _, wanted = wanted_of("split", "sizes")

    def tells(one: Spoilt) -> bool:
        return not one.hollow and is_telling(programs, "tf", one)

    found = [
        one
        for seed in range(6)
        for one in spoils(builtin(), seed, ["split"], ("split", wanted), tells=tells)
    ]
    given = [one.graph.nodes[0].attrs["sizes"] for one in found if one.fault.code == "split.sizes"]
    assert any(len(sizes) > 1 and sum(sizes) > 0 for sizes in given)  # as much as there is


@pytest.mark.parametrize(
    ("target", "name", "requirement"),
    [
        ("tf", "non_max_suppression", "iou_threshold"),
        ("torch", "unravel_index", "in_range"),
        ("tf", "binary_cross_entropy_logits", "shares"),
        ("mxnet", "cross_entropy", "labels"),
        ("mxnet", "roi_align", "batch"),
    ],
)
def test_what_is_made_of_results_and_operands_does_not_hide_what_an_operator_was_handed(
    target: str, name: str, requirement: str
) -> None:
    """Boxes that were found are filled up to a size, positions along axes are stacked, losses of
    samples become their mean, and numbers of images stand in a column beside the regions.
    """
    programs, wanted = Programs(builtin()), wanted_of(name, requirement, target)
    able = functools.partial(programs.has, target)
    found = [
        (one, programs.own(target, one.graph))
        for seed in range(3)
        for one in spoils(builtin(), seed, (), wanted, able)
        if one.fault.code == f"{name}.{requirement}" and not one.hollow
    ]
    assert any(low is not None and is_handed_over(one, low, target, programs) for one, low in found)


def test_operators_that_a_target_lacks_are_not_tried() -> None:
    with Session(("torch",)) as session:
        _, counts = judge_invalid(session, builtin(), range(40), ())
    assert sum(counts["torch"].values()) > 6
    assert "conv" in spelt("torch")
    assert "softmax" in spelt("onnxruntime")
    assert "qlinear_conv" not in spelt("tf")


def test_an_axis_that_is_not_there_is_handed_over_as_it_is() -> None:
    def spoils(seed: int) -> Spoilt | None:
        return spoilt(builtin(), seed, ("cumsum", "softmax", "sort"))

    many = [one for seed in range(60) if (one := spoils(seed)) is not None]
    axes = [one for one in many if isinstance(one.changed, SetAttr) and one.changed.name == "axis"]
    assert axes
    for one in axes:
        assert isinstance(one.changed, SetAttr)
        made = lower(one.graph, "torch", builtin(), {})
        if made.native:
            assert str(one.changed.value) in str(made.code)


# By how many numbers there are in a list that is too short for its axes.
UNSAID = {"tf": (["avg_pool", "conv"], 1), "onnxruntime": (["lp_pool"], 0)}


@pytest.mark.parametrize("target", UNSAID)
def test_lists_that_targets_are_given_as_one_number_or_not_at_all_say_nothing(target: str) -> None:
    """`stride = [2]` of two axes becomes 2 in TensorFlow; no list at all is ONNX's default."""
    names, length = UNSAID[target]
    programs = handed.Programs(builtin())
    able = functools.partial(programs.has, target)
    made = (one for seed in range(100) for one in spoils(builtin(), seed, names, None, able))
    short = (
        one for one in made
        if "numbers;" in one.fault.message
        and isinstance(one.changed, SetAttr) and len(one.changed.value) == length
        and one.changed.name in ("stride", "dilation")
    )  # fmt: skip
    lowered = ((one, handed.own_program(one.graph, target, builtin())) for one in short)
    one, low = next((one, low) for one, low in lowered if low is not None and is_direct(low))
    assert not handed.is_handed_over(one, low, target, programs)


def test_a_list_that_is_too_long_is_handed_over_as_a_list_alone() -> None:
    """Beside the window of the valid call its numbers may be an order and a stride."""
    programs = Programs(builtin())
    able = functools.partial(programs.has, "torch")
    found = [
        one
        for seed in range(12)
        for wanted in (("lp_pool", None), wanted_of("lp_pool", "window"))
        for one in spoils(builtin(), seed, (), wanted, able)
        for one in (one, *smaller(one, builtin()))
        if isinstance(one.changed, SetAttr) and one.fault.code == "lp_pool.window"
        if isinstance(one.changed.value, tuple) and len(one.changed.value) == 2
        if len(one.graph.values["x"].shape) == 3 and not one.hollow
    ]
    own = ((one, programs.own("torch", one.graph)) for one in found)
    assert found
    for one, lowered_ in own:
        if lowered_ is not None and is_handed_over(one, lowered_, "torch", programs):
            assert one.graph.nodes[0].attrs["window"] in lists(lowered_)


def test_a_list_of_one_number_that_is_wrong_by_itself_is_handed_over() -> None:
    """-1 is no amount of padding, be it for the one axis that there is or for all."""
    programs = Programs(builtin())
    able = functools.partial(programs.has, "torch")
    made = (
        one
        for seed in range(12)
        for one in spoils(builtin(), seed, (), wanted_of("avg_pool", "padding"), able)
        if one.fault.code == "avg_pool.padding" and not one.hollow
        if isinstance(one.changed, SetAttr) and isinstance(one.changed.value, tuple)
        if len(one.changed.value) == 1 and one.graph.nodes[0].attrs.get("pad") == "given"
    )
    lowered = ((one, programs.own("torch", one.graph)) for one in made)
    assert any(
        low is not None and is_handed_over(one, low, "torch", programs) for one, low in lowered
    )


@pytest.mark.parametrize(
    ("target", "operator", "requirement", "name"),
    [("tf", "max_pool", "fits", "window"), ("jax", "resize", "size", "size")],
)
def test_a_list_of_one_number_is_handed_over_as_that_number_or_in_a_longer_list(
    target: str, operator: str, requirement: str, name: str
) -> None:
    """Where the number is as wrong for all axes: of one axis TensorFlow is told no list of it."""
    values = [
        one.changed.value
        for seed in range(12)
        for one in told(operator, requirement, target, seed)
        if isinstance(one.changed, SetAttr) and one.changed.name == name
    ]
    assert any(isinstance(value, tuple) and len(value) == 1 for value in values)


@pytest.mark.parametrize(
    "operator", ["gather", "gather_nd", "take_along_axis", "scatter_elements", "scatter_nd"]
)
def test_places_count_from_the_end_where_a_target_documents_it(operator: str) -> None:
    """What lies beyond that is no place there either."""
    wanted = wanted_of(operator, "in_range")
    target = "onnxruntime"
    programs = handed.Programs(builtin())
    found = Counter[bool]()
    for seed in range(40):
        for one in spoils(builtin(), seed, (operator,), wanted):
            if not isinstance(one.changed, SetElements) or one.hollow:
                continue
            ((_, number),) = one.changed.values
            sizes = one.graph.inputs["x"].info.shape
            taken = number == -1 and 0 not in sizes
            if taken or not -max(sizes) <= number < 0:
                found[taken] += 1
                assert handed.is_valid_as_fixed(one, target, programs.catalog) == taken
    assert found[True]
    assert found[False]
    with Session((target,)) as session:
        accepted, _ = judge_invalid(session, builtin(), SEEDS, (operator,))
    assert not [one for _, one in accepted if one.requirement == "in_range"]


@pytest.mark.parametrize(("target", "told"), [("tf", False), ("onnxruntime", True)])
def test_a_whole_number_is_not_told_where_a_conversion_makes_another_of_it(
    target: str, told: bool
) -> None:
    """Of -2**63, 32 bits keep nothing: TensorFlow is given the first image."""
    plan = breakable(builtin(), ("crop_and_resize", "gather"))
    wanted = [w for w in plan if w[1] is not None and w[1].name in ("batch", "in_range")]
    programs = handed.Programs(builtin())
    operators = ("crop_and_resize",) if target == "tf" else ("gather",)
    found = Counter[tuple[bool, bool]]()
    for wish in (w for w in wanted if w[0] in operators):
        for one in (o for seed in range(60) for o in spoils(builtin(), seed, operators, wish)):
            lowered = programs.own(target, one.graph)
            if lowered is None or not isinstance(one.changed, SetElements) or one.hollow:
                continue
            ((name, number),) = one.changed.values
            wide = one.graph.values[name].dtype == "i64" and not -(2**31) <= number < 2**31
            found[wide, handed.is_wrapped(one, lowered)] += 1
    assert found[False, True] == 0
    assert found[True, told] == 0
    assert found[True, not told]
    assert found[False, False]


def test_what_a_target_documents_to_be_wider_is_not_held_against_it() -> None:
    assert admitted("torch", "take_along_axis", "take_along_axis.ids")
    assert admitted("torch:compile", "take_along_axis", "take_along_axis.ids")
    for target in ("jax", "jax:jit", "keras:tensorflow", "keras:jax"):
        assert admitted(target, "take_along_axis", "take_along_axis.ids")
        assert admitted(target, "unique", "unique.x.rank")
        assert not admitted(target, "take_along_axis", "take_along_axis.ids.rank")
    assert admitted("keras:theano", "transpose", "transpose.permutation")
    assert not admitted("keras:tensorflow", "transpose", "transpose.permutation")
    assert not admitted("torch", "softplus", "softplus.beta")
    assert admitted("tf", "batch_norm", "batch_norm.scale")
    assert admitted("tf", "slice_update", "slice_update.begin")
    assert not admitted("tf", "slice_update", "slice_update.step")
    assert not admitted("tf", "batch_norm", "batch_norm.scale", ["fused_batch_norm"])
    assert admitted("torch", "floor_divide", "floor_divide.quotient")
    assert admitted("torch", "matrix_power", "matrix_power.power")
    assert admitted("torch", "solve", "solve.b")
    assert admitted("mxnet", "poisson_density", "poisson_density.rate.rank")
    assert not admitted("mxnet", "poisson_density", "poisson_density.rate")
    for target in ("torch:vmap", "tf"):
        assert admitted(target, "unravel_index", "unravel_index.ids.rank")
    assert not admitted("torch", "unravel_index", "unravel_index.in_range")
    assert admitted("keras:jax", "group_norm", "group_norm.groups")
    assert not admitted("torch", "group_norm", "group_norm.groups")
    for target in ("onnxruntime", "onnxruntime:plain", "openvino", "onnx-reference"):
        assert admitted(target, "embedding", "embedding.table.rank")
        assert admitted(target, "broadcast_to", "broadcast_to.fits")
        assert not admitted(target, "broadcast_to", "broadcast_to.shape")
        assert fixed(target, "gather")
    assert fixed("keras:torch", "gather")
    assert not fixed("torch", "gather")
    assert not fixed("keras:torch", "embedding")
    assert admitted("openvino", "tile", "tile.repeats")
    assert admitted("jax:jit", "kron", "kron.ranks")
    assert admitted("keras:jax", "kron", "kron.ranks")
    assert admitted("tf:xla", "kron", "kron.ranks")
    assert admitted("jax", "embedding", "embedding.table.rank")
    assert admitted("jax", "pad", "pad.reach")
    assert admitted("jax:jit", "set_diagonal", "set_diagonal.sizes")
    assert not admitted("torch", "set_diagonal", "set_diagonal.sizes")
    for code in ("cross.b", "cross.b.rank", "cross.size"):
        assert admitted("jax:jit", "cross", code)
    assert admitted("keras:jax", "cross", "cross.size")
    assert not admitted("torch", "cross", "cross.size")
    assert not admitted("onnxruntime", "tile", "tile.repeats")
    for name, own in (
        ("layer_norm.beta", "SkipLayerNormalization"),
        ("rms_norm.gamma", "SkipSimplifiedLayerNormalization"),
    ):
        operator = name.partition(".")[0]
        assert admitted("onnxruntime", operator, name, ["LayerNormalization"])
        assert not admitted("onnxruntime", operator, name, [own])
        assert not admitted("torch", operator, name)
    assert admitted("torch", "tensordot", "tensordot.b")
    assert admitted("torch", "cosine_similarity", "cosine_similarity.target.rank")
    assert admitted("torch", "gaussian_nll", "gaussian_nll.target")
    assert not admitted("torch", "gaussian_nll", "gaussian_nll.eps")
    assert not admitted("keras:torch", "softplus", "softplus.beta")
    assert not admitted("torch", "floor_divide", "floor_divide.divisor")
    with Session(("torch",)) as session:
        assert judge_invalid(session, builtin(), SEEDS, ("take_along_axis", "kron"))[0] == []


def test_a_number_that_stands_elsewhere_is_not_handed_over() -> None:
    """A transform of no points is asked of torch as one of one, of `x[..., 0]`, along axis 0."""
    text = "model m(x: f32[2, 1]) -> y: f32[1, 2] { y = dft(x; axis = 0, length = 1) }"
    lowered = lower(check(parse(text), builtin()).graphs[0], "torch", builtin(), {})
    assert "[..., 0]" in str(lowered.code)
    assert 1.0 in numbers(lowered)
    assert 0.0 not in numbers(
        replace(lowered, code=str(lowered.code).replace(", 1, 0)", ", 1, 5)"))
    )
    programs = Programs(builtin())
    for seed in range(8):
        for one in spoils(builtin(), seed, ["dft"], wanted_of("dft", "length")):
            own = programs.own("torch", one.graph)
            if own is not None and one.graph.nodes[0].attrs.get("length") == 0:
                assert not is_handed_over(one, own, "torch", programs)


def test_a_number_that_is_wrapped_in_a_tensor_is_handed_over() -> None:
    """`tf.linspace(tf.constant(0.), tf.constant(1.), n)` is one operator of TensorFlow's."""
    made = (one for s in range(6) for one in spoils(builtin(), s, (), ("linspace", None)))
    one = next(one for one in made if one.fault.code == "linspace.beyond")
    lowered = lower(one.graph, "tf", builtin(), {}, whole=False, hollow=True)
    assert "tf.constant" in str(lowered.code)
    assert is_direct(lowered, shaped=True)


@pytest.mark.parametrize("operator", ["gru", "simple_rnn", "separable_conv", "dense"])
def test_layers_without_units_are_drawn_and_handed_over(operator: str) -> None:
    """Whatever else may be changed of a call of many inputs, and however its weights are shaped."""
    programs, target = Programs(builtin()), "keras:tensorflow"
    wanted, *_ = narrower(target)[operator]

    def tells(one: Spoilt) -> bool:
        return not one.hollow and is_telling(programs, target, one)

    able = functools.partial(programs.has, target)
    made = [
        one
        for seed in range(8)
        for one in spoils(builtin(), seed, [operator], (operator, wanted), able, tells)
    ]
    added = [one for one in made if one.added and isinstance(one.changed, Resize)]
    assert len(added) >= 2
    for one in added:
        assert any(0 in port.info.shape for port in one.graph.inputs.values())


def test_operators_are_given_tensors_without_elements_and_layers_of_keras_no_samples() -> None:
    channels = "(x: f32[2, 0, 4]) -> y: f32[2, 0] { y = global_avg_pool(x) }"
    assert lowered(channels, "torch").native
    assert not lowered(channels, "keras:tensorflow").native
    assert lowered(channels, "keras:tensorflow", hollow=True).native
    samples = "(x: f32[0, 3, 4]) -> y: f32[0, 3] { y = global_avg_pool(x) }"
    assert lowered(samples, "torch").native
    assert lowered(samples, "keras:tensorflow").native


def test_a_target_need_not_have_a_largest_of_nothing() -> None:
    text = "nnir 1\nmodel m(x: f32[0, 2]) -> y: f32[2] { y = reduce_max(x; axes = 0) }"
    (graph,) = check(parse(text), builtin()).graphs
    assert lower(graph, "torch", builtin(), {}).native
    with Session(("torch",)) as session:
        (outcome,) = session.compare([Case(graph, inputs(graph, 0, {}), {}, builtin())])
    assert [v.verdict for v in outcome.verdicts["torch"]] == ["unsupported"]


def test_what_is_learnt_from_is_what_the_target_itself_is_given() -> None:
    programs = handed.Programs(builtin())
    able = functools.partial(programs.has, "tf")
    tells = functools.partial(handed.is_telling, programs, "tf")
    ops = ["max_pool", "one_hot", "transpose"]
    made = [one for seed in range(8) for one in spoils(builtin(), seed, ops, None, able, tells)]
    assert {one.graph.nodes[0].op.name for one in made} == {*ops}
    for one in made:
        low = handed.own_program(one.graph, "tf", builtin())
        assert low is not None
        assert one.hollow or handed.is_handed_over(one, low, "tf", programs)


def test_a_rule_that_repeats_a_text_beyond_all_sizes_says_nothing() -> None:
    """An axis of 2**33 is so many colons; the call is left out, and memory is as before."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    call = "model m(x: f32[2], ids: i64[2, 2]) -> y: f32[2, 2] { y = gather(x, ids; axis = 0) }"
    graph = check(parse(call), builtin()).graphs[0]
    (node,) = graph.nodes
    assert handed.own_program(graph, "torch", builtin()) is not None
    attrs = {**node.attrs, "axis": 1 << 33}
    names = {**node.instance.binding.scope.names, "axis": 1 << 33}
    scope = replace(node.instance.binding.scope, names=names)
    binding = replace(node.instance.binding, scope=scope)
    wrong = replace(node, attrs=attrs, instance=replace(node.instance, binding=binding))
    assert handed.own_program(replace(graph, nodes=[wrong]), "torch", builtin()) is None
    assert resource.getrlimit(resource.RLIMIT_AS) == before


def told(op: str, requirement: str, target: str, seed: int) -> list[Spoilt]:
    """The calls of a seed that break a requirement, and of which a target tells something."""
    wanted = wanted_of(op, requirement, target)
    programs = Programs(builtin())
    able = functools.partial(programs.has, target)
    tells = functools.partial(is_telling, programs, target)
    found = spoils(builtin(), seed, [op], wanted, able, tells)
    return [one for one in found if breaks(one, wanted) and not one.hollow]


@pytest.mark.parametrize(
    ("target", "op", "requirement"),
    [
        ("torch", "col2im", "stride"),  # whose `size` must be said
        ("torch", "histogram", "bins"),  # of which PyTorch's counts are real numbers
        ("torch", "fake_quantize", "range"),  # with a zero point where none is given
        ("torch", "avg_pool", "halo"),  # where the word for the padding is that it is given
        ("torch", "max_pool", "halo"),
        ("torch", "avg_pool", "padding"),  # of which PyTorch has one number for both ends
        ("torch", "bucketize", "ascending"),  # of a list that is in order as it is drawn
        ("torch", "random_normal", "stddev"),
        ("torch", "full", "shape"),
        ("torch", "categorical_cross_entropy", "label_smoothing"),
        ("torch", "conv_transpose", "output_padding"),
        ("torch", "conv_transpose", "padding"),  # beside another number that is declared alike
        ("tf", "conv", "fits"),  # with a padding beside a word that leaves it out
        ("tf", "conv", "padding"),
        ("tf", "depthwise_conv", "padding"),
        ("tf", "einsum", "labels"),  # of an equation that does not fit its operands
        ("torch", "einsum", "sizes"),
        ("torch", "einsum", "diagonal"),  # of two axes of one operand, one of size 1
        ("jax", "einsum", "diagonal"),
        ("torch", "ctc", "no_blank"),  # of labels, and of how many of them count
    ],
)
def test_what_breaks_a_requirement_reaches_the_operator(
    target: str, op: str, requirement: str
) -> None:
    if target == "tf":
        pytest.importorskip("tensorflow", reason="TensorFlow is not installed")
    assert any(told(op, requirement, target, seed) for seed in range(12))


@pytest.mark.parametrize(
    ("target", "op", "requirement"),
    [
        ("torch", "margin_ranking", "signs"),
        ("torch", "cosine_embedding", "signs"),
        ("torch", "binary_cross_entropy_logits", "shares"),
        ("tf", "binary_cross_entropy_logits", "shares"),
    ],
)
def test_elements_that_a_documentation_alone_rules_out(
    target: str, op: str, requirement: str
) -> None:
    """The rest of the call keeps to what is documented, and by the definition it has a value."""
    found = [one for seed in range(3) for one in told(op, requirement, target, seed)]
    assert found
    for one in found:
        assert isinstance(one.changed, SetElements)
        assert one.added
        assert one.fault.message.startswith(RULED_OUT)
        numbers = fed(one, builtin())["target"].ravel().tolist()
        broken = numbers.pop(int(one.changed.place * (len(numbers) - 1)))
        usual = set(numbers)
        assert usual <= {1.0} or usual <= {-1.0} or all(0 <= n <= 1 for n in usual)
        assert broken not in (-1.0, 1.0) or requirement == "shares"
        assert run(one.graph, fed(one, builtin()), builtin()) is not None


def test_what_a_requirement_sets_a_number_against_is_handed_over_too() -> None:
    """Of a stable `top_k` PyTorch sorts all, and the first `k` are cut off."""
    found = [one for seed in range(12) for one in told("top_k", "k", "torch", seed)]
    programs = Programs(builtin())
    for one in found:
        lowered = programs.own("torch", one.graph)
        assert lowered is not None
        assert isinstance(lowered.code, str)
        assert "torch.topk" in lowered.code


def test_a_mode_is_held_to_what_its_framework_documents() -> None:
    """XLA clamps positions and divides by 0, where TensorFlow refuses both; JAX documents either,
    of quotients that `jax.lax.div` makes.
    """
    for target in ("tf", "tf:xla"):
        assert not admitted(target, "gather", "gather.in_range")
        assert not admitted(target, "floor_divide", "floor_divide.divisor")
    assert "clamped" in admitted("jax:jit", "gather", "gather.in_range")
    assert "jax.lax.div" in admitted("jax:jit", "divide", "divide.divisor")
    assert not admitted("jax:jit", "floor_divide", "floor_divide.divisor")
    assert "both directions" in admitted("onnxruntime", "broadcast_to", "broadcast_to.fits")
    assert not admitted("onnxruntime", "broadcast_to", "broadcast_to.shape")
    wraps = [admitted(target, "divide", "divide.quotient") for target in ("tf", "tf:xla")]
    assert wraps[0] == wraps[1]


def test_a_program_of_a_valid_call_says_nothing_of_an_invalid_one() -> None:
    """A window of 1 is no longer than what is padded at both ends; but ONNX's MaxPool that pads by
    itself is told of neither end.
    """
    text = """
    model m(x: f32[1, 1, 4]) -> y: f32[1, 1, 2] {
      y = max_pool(x; window = [2], pad = same, before = 1, after = 1)
    }"""
    graph = check(parse(text), builtin()).graphs[0]
    node, types = graph.nodes[0], types_of(graph)
    attrs = {**node.attrs, "window": (1,)}
    instance = judge(node.op, types, attrs)
    assert instance is not None
    assert [fault.code for fault in instance.faults] == ["max_pool.halo"]
    one = spoilt_call(node, graph, {}, SetAttr("window", (1,)), instance, types, attrs)
    own = Programs(builtin())
    assert own.has("onnxruntime", one.graph)
    assert not is_telling(own, "onnxruntime", one)


@pytest.mark.parametrize(
    "operator", ["binary_cross_entropy", "categorical_cross_entropy", "multilabel_soft_margin"]
)
def test_targets_that_a_framework_rules_out_are_handed_over(operator: str) -> None:
    programs, target = Programs(builtin()), "torch"
    wanted, *_ = narrower(target)[operator]
    able = functools.partial(programs.has, target)
    tells = functools.partial(is_telling, programs, target)
    made = [
        one
        for seed in range(3)
        for one in spoils(builtin(), seed, [operator], (operator, wanted), able, tells)
        if one.fault.code == f"{operator}.{wanted.name}"
    ]
    assert made
    for one in made:
        assert isinstance(one.changed, SetElements)
        assert [name for name, _ in one.changed.values] == ["target"]


def _made(operator: str, target: str, seeds: int) -> list[tuple[Spoilt, bool]]:
    """Spoilt calls that a target has, and whether each is handed over."""
    programs = Programs(builtin())
    able = functools.partial(programs.has, target)
    made = (
        one
        for seed in range(seeds)
        for one in spoils(builtin(), seed, (), (operator, None), able)
        if not one.hollow
    )
    owned = ((one, programs.own(target, one.graph)) for one in made)
    return [
        (one, is_handed_over(one, own, target, programs)) for one, own in owned if own is not None
    ]


def test_states_are_handed_over_beside_weights_in_another_order() -> None:
    """Keras takes the parts of an LSTM's weights in another order, and states as they are."""
    made = _made("lstm_cell", "keras:tensorflow", 6)
    shaped = [(one.changed.name, how) for one, how in made if isinstance(one.changed, Retype)]
    states = [direct for name, direct in shaped if name in ("h", "c")]
    weights = [direct for name, direct in shaped if name in ("w", "r")]
    assert any(states)
    assert weights
    assert not any(weights)


@pytest.mark.parametrize(("target", "asked"), [("tf", True), ("torch", False)])
def test_tensors_of_no_axes_are_handed_over_where_they_are_not_as_good_as_one(
    target: str, asked: bool
) -> None:
    """PyTorch documents that a dimension of 0 is one of a tensor without any."""
    made = _made("reverse", target, 24)
    lone = [direct for one, direct in made if not one.graph.inputs["x"].info.shape]
    assert lone
    assert any(lone) is asked


def test_a_kernel_that_goes_by_sizes_alone_is_told_those_of_the_operand() -> None:
    """Not those of the result, which fit what flows back however wrong the operand is."""
    made = _made("resize_linear_gradient", "torch", 12)
    told = [one.graph for one, direct in made if direct and isinstance(one.changed, Retype)]
    written = [(g, str(lower(g, "torch", builtin(), {}).code)) for g in told]
    sizes = [(g.inputs["x"].info.shape, text) for g, text in written if "aten.upsample" in text]
    assert sizes
    assert all(f", {shape}, " in text for shape, text in sizes)


def test_what_takes_an_operand_itself_is_told_from_what_takes_a_part_of_it() -> None:
    def written(body: str) -> Lowered:
        text = f"def f(x, y):\n    'What it gives.'\n    z = {body}\n    return z\n"
        return replace(lowered("(x: f32[2]) -> y: f32[2] { y = exp(x) }", "torch"), code=text)

    assert takes_as_it_is(written("tf.nn.dense(x, tf.reshape(y, [2]))"), "x")
    assert takes_as_it_is(written("applied(layer, [y], states=[x])"), "x")
    assert not takes_as_it_is(written("tf.nn.dense(tf.reshape(x, [2]), y)"), "x")
    assert not takes_as_it_is(written("tf.nn.dense(x[0], y)"), "x")


@pytest.mark.parametrize("operator", ["conv", "conv_transpose"])
def test_a_kernel_with_other_axes_than_the_input_is_handed_over(operator: str) -> None:
    """Without a shape of its window in a model file, which would be another fault."""
    onnx = pytest.importorskip("onnx")
    programs = Programs(builtin())
    for target in ("onnxruntime", "torch"):
        able = functools.partial(programs.has, target)
        handed = []
        for seed in range(6):
            for one in spoils(builtin(), seed, [operator], wanted_of(operator, "ranks"), able):
                own = programs.own(target, one.graph)
                if own is not None and is_handed_over(one, own, target, programs):
                    handed.append(own)
        assert len(handed) >= 3, target
        for own in handed if target == "onnxruntime" else ():
            assert isinstance(own.code, bytes)
            nodes = onnx.load_from_string(own.code).graph.node
            assert "kernel_shape" not in {a.name for node in nodes for a in node.attribute}


def test_a_number_of_groups_is_handed_over_whatever_stands_for_the_factors() -> None:
    programs = Programs(builtin())
    told = {"gamma" in one.graph.inputs for one in _of_no_groups(programs)}
    assert told == {False, True}


def _of_no_groups(programs: Programs) -> Iterator[Spoilt]:
    """What MXNet is handed of group normalisations with groups of 0."""
    able = functools.partial(programs.has, "mxnet")
    for seed in range(8):
        for one in spoils(builtin(), seed, ["group_norm"], wanted_of("group_norm", "groups"), able):
            own = programs.own("mxnet", one.graph)
            none = one.graph.nodes[0].attrs["groups"] == 0 and not one.hollow
            if none and own is not None and is_handed_over(one, own, "mxnet", programs):
                yield one


def test_what_holds_of_some_numbers_is_admitted_of_these_alone() -> None:
    """`torch.histc` takes the ends of the data where both of its own are 0."""
    code = "histogram.range"
    assert admitted("torch", "histogram", code)
    assert admitted("torch", "histogram", code, names={"low": 0, "high": 0.0})
    assert not admitted("torch", "histogram", code, names={"low": 7.0, "high": 7.0})


@pytest.mark.parametrize(
    ("operator", "target"),
    [
        *((operator, "torch") for operator in ("full", "random_integers", "random_uniform")),
        ("full", "jax"), ("full", "mxnet"), ("full", "keras:torch"),
        ("random_uniform", "tf"), ("random_uniform", "mxnet"), ("random_integers", "mxnet"),
    ],
)  # fmt: skip
def test_a_shape_below_0_of_what_is_made_of_numbers_is_handed_over(
    operator: str, target: str
) -> None:
    """What a rule makes of it has a shape of which nobody knows anything."""
    programs = Programs(builtin())
    able = functools.partial(programs.has, target)
    handed = 0
    for seed in range(6):
        for one in spoils(builtin(), seed, [operator], wanted_of(operator, "shape"), able):
            own = programs.own(target, one.graph)
            handed += own is not None and is_handed_over(one, own, target, programs)
    assert handed >= 3


@pytest.mark.parametrize("target", ["torch", "tf", "jax", "keras:torch"])
def test_a_size_is_handed_over_where_a_target_is_told_that_of_the_result(target: str) -> None:
    """As it is declared, and not that of a valid call; -1 and 0 may be what is left, and nothing.

    As text the call has the one fault, and a smaller call is told so, too.
    """
    programs, smallest = Programs(builtin()), 0
    found = [
        one
        for seed in range(8)
        for one in told("resize", "size", target, seed)
        if isinstance(one.changed, SetAttr)
    ]
    assert any(one.said for one in found)
    for one in found:
        (info,) = (info for _, info in one.graph.nodes[0].instance.outputs or ())
        assert one.said == (min(info.shape) < 0)
        assert -1 not in info.shape
        diagnostics = check(parse(text_of(one.graph)), builtin()).diagnostics
        assert [d.code for d in diagnostics] == ["resize.size"]
        for other in smaller(one, builtin()) if one.said else ():
            smallest += other.said and is_telling(programs, target, other)
    assert smallest


def test_a_tensor_without_axes_beside_one_with_one_is_as_good_in_pytorch() -> None:
    programs = Programs(builtin())
    able = functools.partial(programs.has, "torch")
    tried = 0
    for seed in range(8):
        wanted = ("scatter_elements", None)
        for one in spoils(builtin(), seed, ["scatter_elements"], wanted, able):
            shapes = [port.info.shape for port in one.graph.inputs.values()]
            own = programs.own("torch", one.graph)
            few = () in shapes and max(map(len, shapes)) == 1
            if few and isinstance(one.changed, Retype) and own is not None:
                tried += 1
                assert not is_handed_over(one, own, "torch", programs)
    assert tried


@pytest.mark.parametrize("turn", range(4))
def test_a_list_of_ones_too_many_is_not_told(turn: int) -> None:
    """Steps of one are usual: nothing is said of them, however many there are. With channels last
    in memory there are other ones in the program, which are not them.
    """
    text = "model m(x: f32[1, 4, 4], w: f32[1, 4, 1]) -> y: f32[1, 1, 4] { y = conv(x, w) }"
    graph = check(parse(text), builtin()).graphs[0]
    node, types = graph.nodes[0], types_of(graph)
    for ones in ((1, 1), (2, 2)):
        attrs = {**node.attrs, "stride": ones}
        instance = judge(node.op, types, attrs)
        assert instance is not None
        assert instance.faults
        one = spoilt_call(node, graph, {}, SetAttr("stride", ones), instance, types, attrs)
        programs = Programs(builtin(), Manner(turn=turn))
        assert programs.has("torch", one.graph)
        lowered = programs.own("torch", one.graph)
        assert lowered is not None
        assert is_handed_over(one, lowered, "torch", programs) == (ones == (2, 2))
