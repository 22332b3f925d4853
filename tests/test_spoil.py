"""Calls with one fault, as they are drawn: what can be broken is, in several ways."""

from __future__ import annotations

import functools
import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from irlang import ast
from irlang.catalog import builtin
from irlang.diagnostics import InvalidInput
from irlang.diff.answers import is_beyond
from irlang.diff.handed import Programs, is_handed_over
from irlang.diff.invalid import (
    judge_invalid,
)
from irlang.diff.runner import Session
from irlang.gen.build import generate
from irlang.gen.changes import (
    SetElements,
    changes,
    in_other_words,
    in_turn,
    way_of,
)  # fmt: skip
from irlang.gen.draw import Limits as Sizes
from irlang.gen.fed import fed
from irlang.gen.hollow import without_elements
from irlang.gen.moves import Retype, SetAttr
from irlang.gen.pattern import pattern
from irlang.gen.smaller import smaller
from irlang.gen.spoil import breakable, spoils, spoilt
from irlang.gen.spoilt import OPEN, Spoilt, broken_by
from irlang.instance import instantiate
from irlang.interp.program import run
from irlang.interp.shape import check
from irlang.parser import parse
from irlang.signature import Given
from tests.spoilt_calls import text_of, wanted_of

pytest.importorskip("torch", reason="torch is not installed")


@pytest.fixture(scope="module")
def many() -> list[Spoilt]:
    return [one for seed in range(120) if (one := spoilt(builtin(), seed)) is not None]


def test_a_spoilt_call_has_one_fault_which_the_checker_finds(many: list[Spoilt]) -> None:
    assert len(many) > 100
    for one in many:
        codes = [d.code for d in check(parse(text_of(one.graph)), builtin()).diagnostics]
        if isinstance(one.changed, SetElements):
            assert codes == []  # the checker knows no values
            if one.fault.message == OPEN:  # of which the definition may have something to say
                assert one.hollow
                continue
            with pytest.raises(InvalidInput, match=one.fault.code):
                run(one.graph, fed(one, builtin()), builtin())
        elif is_beyond(one):
            assert one.hollow or codes  # which may be valid, but for its size
        else:
            assert one.fault.code in codes, text_of(one.graph)
    kinds = {type(one.changed) for one in many}
    assert kinds == {SetAttr, Retype, SetElements}


def test_spoilt_calls_are_of_many_operators_and_a_function_of_the_seed(many: list[Spoilt]) -> None:
    assert len({one.graph.nodes[0].op.name for one in many}) > 60
    again = spoilt(builtin(), 7)
    assert again is not None
    assert text_of(again.graph) in map(text_of, (one.graph for one in many))


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6))
def test_smaller_spoilt_calls_have_the_same_fault(seed: int) -> None:
    one = spoilt(builtin(), seed)
    if one is None:
        return
    size = sum(math.prod(port.info.shape) for port in one.graph.inputs.values())
    for other in smaller(one, builtin()):
        assert other.fault.code == one.fault.code
        assert other.changed == one.changed
        assert sum(math.prod(p.info.shape) for p in other.graph.inputs.values()) <= size
        values = fed(other, builtin())
        assert {n: a.shape for n, a in values.items()} == {
            n: port.info.shape for n, port in other.graph.inputs.items()
        }


def test_every_requirement_of_an_operator_is_broken_by_some_seed() -> None:
    op = builtin().op("conv")
    assert op is not None
    own = {f"conv.{s.name}" for s in op.body if isinstance(s, ast.Require)}
    codes: set[str] = set()
    for seed in range(80):
        if len(codes & own) > len(own) // 2:
            break
        codes.update(one.fault.code for one in [spoilt(builtin(), seed, ("conv",))] if one)
    assert len(codes & own) > len(own) // 2


def test_a_requirement_on_values_is_broken_by_one_element() -> None:
    made = spoilt(builtin(), 1, ("gather",))
    assert made is not None
    assert made.fault.code == "gather.in_range"
    assert isinstance(made.changed, SetElements)
    ((name, value),) = made.changed.values
    assert fed(made, builtin())[name].flat[0] == value
    wanted = (spoilt(builtin(), seed, ("floor_divide",)) for seed in range(30))
    both = next(one for one in wanted if one and one.fault.code == "floor_divide.quotient")
    assert "give a an element -" in str(both.changed)
    assert "give b an element -1" in str(both.changed)
    with Session(("torch",)) as session:
        found, counts = judge_invalid(session, builtin(), range(8), ("gather", "embedding"))
    assert found == []
    assert counts["torch"]["refused"] > 1


def test_what_is_asked_of_elements_is_broken_at_any_place() -> None:
    """What looks at the first and the last offset alone takes one between them, which is none."""
    (order,) = (
        (op, one)
        for op, one in breakable(builtin(), ["embedding_bag_offsets"])
        if one is not None and one.name == "order"
    )
    found = [
        one.changed
        for seed in range(4)
        for one in spoils(builtin(), seed, ["embedding_bag_offsets"], order)
        if one.fault.code == "embedding_bag_offsets.order"
    ]
    assert found
    assert all(isinstance(one, SetElements) and 0 < one.place < 1 for one in found)
    made = spoils(builtin(), 1, ["gather"], breakable(builtin(), ["gather"])[0])
    places = {one.changed.place for one in made if isinstance(one.changed, SetElements)}
    assert len(places) > 1


@pytest.mark.parametrize("name", ["gather", "scatter_nd", "embedding", "reverse_sequence"])
def test_a_requirement_on_integers_is_broken_from_near_and_from_far(name: str) -> None:
    """What refuses the first place that is none may follow one that no memory has."""
    found: set[int] = set()
    for require in (r for op, r in breakable(builtin(), [name]) if r is not None):
        for seed in range(3):
            for one in spoils(builtin(), seed, [name], (name, require)):
                if isinstance(one.changed, SetElements):
                    found |= {int(value) for _, value in one.changed.values}
    assert {2**31 - 1, -(2**31)} & found or {2**63 - 1, -(2**63)} & found
    assert any(0 < n < 100 for n in found)


@pytest.mark.parametrize("name", ["max_pool", "conv", "resize"])
def test_a_call_in_other_words_is_valid_and_says_another_word(name: str) -> None:
    """Of a target's own operator a padding is only where the word says that it is given."""
    turned = 0
    for seed in range(8):
        node = generate(builtin(), seed, apart=[name]).graph.nodes[-1]
        other = in_other_words(node, random.Random(seed))
        before, after = (one.instance.binding.scope.names for one in (node, other))
        words = [n for n in before if isinstance(before[n], str) and before[n] != after[n]]
        assert not other.instance.faults
        assert len(words) == (other is not node)
        turned += other is not node
    assert turned


def test_numbers_that_are_declared_alike_change_together() -> None:
    """MXNet has one number for both ends of an axis."""
    requires = [one for _, one in breakable(builtin(), ["max_pool"]) if one is not None]
    wanted = next(one for one in requires if one.name == "halo")
    ends = [
        (one.graph.nodes[0].attrs.get("before"), one.graph.nodes[0].attrs.get("after"))
        for seed in range(24)
        for one in spoils(builtin(), seed, ["max_pool"], ("max_pool", wanted))
        if one.fault.code == "max_pool.halo"
    ]
    assert any(low is not None and low == high for low, high in ends)
    assert any(low != high for low, high in ends)


def test_a_list_may_have_an_axis_twice_from_either_end() -> None:
    found = [one for seed in range(8) for one in spoils(builtin(), seed, (), ("reverse", None))]
    lists = [one.changed.value for one in found if isinstance(one.changed, SetAttr)]
    assert any(len(set(axes)) < len(axes) for axes in lists)


def test_no_more_is_drawn_of_what_has_taken_its_time() -> None:
    tried: list[Spoilt] = []

    def tells(one: Spoilt) -> bool:
        tried.append(one)
        return False

    wanted = wanted_of("max_pool", "halo")
    draw = functools.partial(spoils, builtin(), 1, (), wanted, lambda _: True, tells)
    assert draw(enough=lambda: len(tried) >= 5) == []
    assert len(tried) == 5
    draw()
    assert len(tried) > 50


def test_reals_are_put_outside_of_their_bounds_and_nan_says_that_there_is_no_value() -> None:
    p = spoilt(builtin(), 1, (), wanted_of("bernoulli", "p"))
    assert p is not None
    assert p.fault.code == "bernoulli.p"
    assert isinstance(p.changed, SetElements)
    ((_, value),) = p.changed.values
    assert not 0 <= value <= 1
    with Session(("torch",)) as session:
        found, counts = judge_invalid(session, builtin(), range(12), ("batch_norm",))
    assert counts["torch"]["warned"] > 0  # a variance below 0
    assert not [one for _, one in found if one.requirement == "spread"]


@pytest.mark.parametrize(
    ("name", "requirement"), [("divide", "divisor"), ("modulo", "divisor"), ("divide", "quotient")]
)
def test_a_requirement_on_integers_is_broken_in_a_call_of_integers(
    name: str, requirement: str
) -> None:
    """Most calls are of reals, of which there is no such requirement."""
    made = [spoilt(builtin(), seed, (), wanted_of(name, requirement)) for seed in range(16)]
    assert sum(one is not None and one.fault.code == f"{name}.{requirement}" for one in made) >= 12


def test_numbers_beyond_all_sizes_stand_beside_what_else_there_is_to_break() -> None:
    """A product of sizes that 64 bits do not hold, and such a number beside an input of nothing."""
    found = [one for seed in range(6) for one in spoils(builtin(), seed, (), ("tile", None))]
    beyond = [one for one in found if one.fault.code == "tile.beyond"]
    assert beyond
    # Beside an input of nothing it is asked that no process ends, and no more.
    assert {one.hollow for one in beyond} == {True, False}
    for one in beyond:
        assert one.hollow == any(0 in port.info.shape for port in one.graph.inputs.values())
    made = [next(iter(one.graph.nodes)) for one in beyond]
    repeats = [node.attrs["repeats"] for node in made]
    assert all(max(n if isinstance(n, tuple) else (n,)) >= 2**29 for n in repeats)
    sizes = [[info.shape for info in one.graph.values.values()] for one in beyond]
    assert any(0 in shapes[0] for shapes in sizes)
    assert any(0 not in shapes[0] for shapes in sizes)


def test_a_size_that_follows_from_a_real_number_is_beyond_all_sizes_too() -> None:
    found = [one for seed in range(24) for one in spoils(builtin(), seed, (), ("arange", None))]
    beyond = [one for one in found if one.fault.code == "arange.beyond"]
    numbers = {n for one in beyond for n in one.graph.nodes[0].attrs.values()}
    assert {2.0**62, 1e19, 3e38} <= numbers
    sizes = [info.shape[0] for one in beyond for info in one.graph.values.values()]
    assert min(sizes) >= 2**55


def test_what_is_wanted_is_broken() -> None:
    for wanted in breakable(builtin(), ("softplus", "max_pool")):
        got = [one.fault.code for n in range(3) if (one := spoilt(builtin(), n, (), wanted))]
        code = f"{wanted[0]}.{wanted[1].name}" if wanted[1] is not None else f"{wanted[0]}."
        assert any(one.startswith(code) for one in got), (wanted[0], code, got)


@pytest.mark.parametrize("name", ["max_pool", "avg_pool", "lp_pool"])
def test_a_default_that_follows_what_was_changed_is_no_second_fault(name: str) -> None:
    """A window of nothing has a stride of nothing, where no stride is given."""
    op = builtin().op(name)
    assert op is not None
    window = next(one for one in op.body if isinstance(one, ast.Require) and one.name == "window")
    made = [one for s in range(6) for one in spoils(builtin(), s, [name], (name, window))]
    plain = [one for one in made if "stride" not in one.graph.nodes[0].attrs]
    assert plain
    assert {one.fault.code for one in plain} == {f"{name}.window"}


@pytest.mark.parametrize("name", ["lp_pool", "max_pool_with_argmax"])
def test_a_default_that_follows_what_was_changed_is_not_what_was_changed(name: str) -> None:
    """PyTorch is given a window of its rule's own beside a stride of nothing."""
    programs = Programs(builtin())
    able = functools.partial(programs.has, "torch")
    made = (one for seed in range(400) for one in spoils(builtin(), seed, [name], None, able))
    one = next(
        one for one in made
        if isinstance(one.changed, SetAttr)
        and (one.changed.name, one.changed.value) == ("window", ())
        and "stride" not in one.graph.nodes[0].attrs
    )  # fmt: skip
    lowered = programs.own("torch", one.graph)
    assert lowered is not None
    assert not is_handed_over(one, lowered, "torch", programs)


@pytest.mark.parametrize("name", ["max_pool", "avg_pool", "max_pool_with_argmax"])
def test_what_would_follow_what_is_changed_is_said_as_well(name: str) -> None:
    """A target that refuses strides of nothing has not been asked about windows of nothing."""
    wanted = wanted_of(name, "window")
    made = [one for s in range(8) for one in spoils(builtin(), s, [name], wanted)]
    attrs = [one.graph.nodes[0].attrs for one in made if isinstance(one.changed, SetAttr)]
    apart = [one for one in attrs if one["window"] != one.get("stride", one["window"])]
    assert apart
    for one in apart:
        stride = one["stride"]
        assert min(stride if isinstance(stride, tuple) else (stride,), default=1) >= 1  # of no axes


def test_where_only_nothing_is_found_to_be_broken_another_call_is_tried() -> None:
    """A window that lies beside its input says more than an input without elements."""
    wanted = wanted_of("max_pool", "fits")

    def direct(one: Spoilt) -> bool:
        return one.hollow or not {"pad", "dilation", "after"} & one.graph.nodes[0].attrs.keys()

    made = (spoils(builtin(), seed, ["max_pool"], wanted, tells=direct) for seed in range(24))
    assert sum(any(not one.hollow for one in ways) for ways in made) >= 18


@pytest.mark.parametrize("seed", range(4))
def test_changes_are_tried_by_their_ways_in_turn(seed: int) -> None:
    program = generate(builtin(), seed, apart=["avg_pool"], limits=Sizes(elements=48, length=5))
    node = program.graph.nodes[-1]
    found = changes(node, random.Random(seed))
    turned = in_turn(node, found, {"window"}, random.Random(seed))
    assert sorted(map(str, turned)) == sorted(map(str, found))
    about = [move for move in turned if move.name == "window"]
    assert turned[: len(about)] == about
    ways = [way_of(move) for move in about]
    first = len(set(ways))
    assert len(set(ways[:first])) == first  # one of every way before another of one


def test_one_requirement_is_broken_in_several_ways_and_one_call_by_all_it_says() -> None:
    plan = {one.name if one else "": one for _, one in breakable(builtin(), ("max_pool",))}
    made = (spoils(builtin(), seed, (), ("max_pool", plan["window"])) for seed in range(3))
    several = max(made, key=len)  # some calls have an input too small for a window to be changed
    assert {one.fault.code for one in several} == {"max_pool.window"}
    given = {str(one.changed) for one in several if not one.hollow}
    assert len(given) == sum(not one.hollow for one in several) > 1
    rest = [spoils(builtin(), n, (), ("conv", None)) for n in range(4)]
    assert max(len({one.fault.code for one in some}) for some in rest) > 1


def test_a_call_without_elements_is_broken_in_its_attributes_and_numbers_of_axes() -> None:
    """TensorFlow 2.4 ends of places of no boxes that have two axes, and takes them of some."""
    made = [
        one
        for seed in range(12)
        for one in spoils(builtin(), seed, (), ("crop_and_resize", None))
        if one.hollow and not isinstance(one.changed, SetElements)
    ]
    for one in made:
        (fault,) = one.graph.nodes[0].instance.faults
        assert fault.code == one.fault.code
        if not one.fault.code.endswith((".beyond", ".form")):
            assert any(0 in port.info.shape for port in one.graph.inputs.values())
    odd = [
        one.graph
        for one in made
        if isinstance(one.changed, Retype)
        and one.changed.name == "batch"
        and len(one.changed.info.shape) != 1
    ]
    assert any(graph.inputs["boxes"].info.shape[0] == 0 for graph in odd)
    assert all(0 in graph.inputs["batch"].info.shape for graph in odd)


@pytest.mark.parametrize("operator", ["conv", "instance_norm", "gather_nd", "lstm", "concat"])
def test_calls_without_elements_are_valid_and_those_with_most_of_these_come_first(
    operator: str,
) -> None:
    for seed in range(3):
        program = generate(builtin(), seed, apart=[operator], limits=Sizes(elements=48, length=5))
        node = program.graph.nodes[-1]
        given: dict[str, Given] = dict(node.instance.binding.inputs)
        found = without_elements(node, given, random.Random(seed))
        empty = [_empty(types) for _, types in found]
        assert empty == sorted(empty, reverse=True)
        assert all(number > 0 for number in empty)
        for own, types in found:
            instance = instantiate(own.op, types, own.attrs)
            assert not instance.faults


def _empty(types: dict[str, Given]) -> int:
    several = (one if isinstance(one, tuple) else (one,) for one in types.values())
    return sum(info is not None and 0 in info.shape for infos in several for info in infos)


def test_a_call_is_broken_by_numbers_beyond_all_sizes_and_by_having_nothing() -> None:
    op = builtin().op("conv")
    assert op is not None
    wanted = {one.name: (op.name, one) for one in op.body if isinstance(one, ast.Require)}
    made = [
        one
        for name in ("channels", "stride")
        for seed in range(12)
        for one in spoils(builtin(), seed, ["conv"], wanted[name])
    ]
    assert any("2147483649" in str(one.changed) for one in made)
    hollow = [one for one in made if one.hollow]
    assert hollow
    for one in made:
        empty = any(0 in port.info.shape for port in one.graph.inputs.values())
        assert empty == one.hollow


def test_words_beneath_which_a_number_is_read_come_first() -> None:
    op = builtin().op("max_pool")
    assert op is not None
    seen = 0
    for seed in range(12):
        node = generate(builtin(), seed, apart=["max_pool"]).graph.nodes[-1]
        binding, given = node.instance.binding, {**node.attrs, "pad": "given"}
        if binding.scope.names["pad"] != "given":
            other = in_other_words(node, random.Random(seed), {"before", "after"})
            valid = not instantiate(op, binding.inputs, given).faults
            assert not valid or other.instance.binding.scope.names["pad"] == "given"
            seen += valid
    assert seen >= 3


def test_the_ends_of_64_bits_are_among_the_numbers_that_spoil() -> None:
    told: set[object] = set()
    ends = {2**63 - 1, -(2**63)}
    for seed in range(160):
        for one in spoils(builtin(), seed, ["max_pool", "conv", "top_k"]):
            value = one.changed.value if isinstance(one.changed, SetAttr) else ()
            told.update(value if isinstance(value, tuple) else (value,))
        if ends <= told:
            break
    assert ends <= told


@pytest.mark.parametrize("operator", ["gather", "embedding", "roi_align"])
def test_elements_are_asked_for_of_an_axis_of_nothing(operator: str) -> None:
    (wanted,) = (
        one for one in breakable(builtin(), (operator,))
        if one[1] and one[1].name in ("in_range", "in_vocab", "batch")
    )  # fmt: skip
    found = [one for seed in range(3) for one in spoils(builtin(), seed, (), wanted)]
    hollow = [one for one in found if isinstance(one.changed, Retype)]
    assert hollow
    for one in hollow:
        assert isinstance(one.changed, Retype)
        assert wanted[1]
        assert 0 in one.changed.info.shape
        assert one.fault.code == f"{operator}.{wanted[1].name}"
        assert all(0 not in info.shape for _, info in one.graph.nodes[0].instance.outputs or ())


def test_every_axis_of_an_input_is_a_way_of_its_own() -> None:
    """A target that broadcasts samples may yet read beyond the keys that there are."""
    made = [spoils(builtin(), seed, ["attention"], ("attention", None)) for seed in range(10)]
    of_v = [[one.fault.size for one in some if one.fault.code == "attention.v"] for some in made]
    assert {"B", "G", "M"} <= {size for sizes in of_v for size in sizes}
    assert any(len(set(sizes)) > 1 for sizes in of_v)


@pytest.mark.parametrize("name", ["sparse_to_dense", "sparse_reduce", "embedding_bag_offsets"])
def test_places_that_ascend_are_put_out_of_order_and_are_in_order_else(name: str) -> None:
    op = builtin().op(name)
    assert op is not None
    wanted = next(one for one in pattern(op).orders if one.name == "order")
    made = [one for seed in range(6) for one in spoils(builtin(), seed, [name], (name, wanted))]
    broken = [one for one in made if one.fault.code == f"{name}.order"]
    assert len(broken) >= 3
    for one in broken:
        why = broken_by(one.graph, fed(one, builtin()), builtin())
        assert why is not None
        assert why.code == one.fault.code


def test_what_a_smaller_spoilt_call_is_fed_breaks_what_the_whole_one_did() -> None:
    """Of places that ascend, the first as large as the last is wrong beside some numbers alone."""
    wanted = wanted_of("sparse_segment_gradient", "order")
    made = [one for seed in range(40) for one in spoils(builtin(), seed, (), wanted)]
    broken = [one for one in made if one.fault.code == "sparse_segment_gradient.order"]
    others = [other for one in broken for other in smaller(one, builtin())]
    assert len(others) > 20
    for one in (*broken, *others):
        why = broken_by(one.graph, fed(one, builtin()), builtin())
        assert why is not None, text_of(one.graph)
        assert why.code == one.fault.code


def test_numbers_of_axes_have_their_turn_among_many_sizes() -> None:
    """A kernel with an axis more than the input, and with one less, of nearly every call."""
    told: list[int] = []
    for seed in range(8):
        made = spoils(builtin(), seed, ["conv"], wanted_of("conv", "ranks"))
        told += {
            len(one.graph.inputs["w"].info.shape) - len(one.graph.inputs["x"].info.shape)
            for one in made
            if one.fault.code == "conv.ranks" and not one.hollow
        }
    assert told.count(1) >= 6
    assert told.count(-1) >= 6


def test_a_list_longer_than_tensors_have_axes_must_end_no_process() -> None:
    made = [one for n in range(12) for one in spoils(builtin(), n, (), ("broadcast_to", None))]
    long = [one for one in made if one.fault.code == "broadcast_to.long"]
    shapes = [one.graph.nodes[0].attrs["shape"] for one in long]
    assert shapes
    assert min(map(len, shapes)) > 255
    assert all(one.hollow for one in long)
