"""One call over sets of numbers: its equations in order, and where they may leave the finite."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import replace

from irlang import equations as eq
from irlang.certain import of_values
from irlang.equation_rules import conjuncts, simplify
from irlang.graph import Node
from irlang.instance import Definitions
from irlang.interp import reasons
from irlang.interp.arithmetic import Arithmetic, stored
from irlang.interp.assumptions import assume
from irlang.interp.declared import numbers_within
from irlang.interp.interval import NOTHING, Numbers, Origin, join, may, meet
from irlang.interp.range_eval import Evaluator, Limits, Place
from irlang.interp.range_steps import Steps
from irlang.interp.recall import NONE, Recall, Trials, together
from irlang.interp.region_terms import Terms
from irlang.interp.regions import Region, Span, Tensor, merged, parted, whole
from irlang.interp.schedule import Recurrence, schedule
from irlang.interp.stepwise import precision
from irlang.interp.unfolding import (
    is_place,
    own_index,
    settled,
    small,
    taken,
    without_lone,
)
from irlang.laws import LAWS
from irlang.scalar import SCALARS

_STEPS = 16  # of a recurrence that is unrolled into regions


class Call:
    """A call. number: its own, for the names of what it has inside. tensors: those of the graph by
    value name and of calls by their own names; the call adds to them. far: whether what is inside
    has the exponents of f64. proofs: how many expressions they may evaluate, if fewer than usual.
    before: where proofs brought something in the calls that are like it, and where nothing.
    """

    def __init__(
        self,
        node: Node,
        number: int,
        definitions: Definitions,
        tensors: dict[str, Tensor],
        domain: str,
        flush: bool = False,
        far: bool = False,
        proofs: int | None = None,
        before: Trials = NONE,
    ) -> None:
        self.node = node
        self.definitions = definitions
        self.expansion = of_values(node.expansion(definitions))
        self.domain = domain
        self.number = number
        self.own = Arithmetic(precision(self.expansion), flush, far)
        self.tensors = tensors
        self.before = before
        outside = {**node.feeds(), **node.results()}
        self.names = {
            name: outside.get(name, f"{number}.{name}") for name in self.expansion.tensors
        }
        for one in self.expansion.drawn:
            low, high = LAWS[one.law].support(*map(float, one.params))
            info = self.expansion.tensors[one.tensor]
            tensors[self.names[one.tensor]] = whole(info, numbers_within(info, (low, high)))
        self.places: dict[Origin, Place] = {}
        self.granted: list[eq.Check] = []  # what it requires of numbers, and is not sure to have
        walk = Recall if domain == "relations" else Evaluator
        self.walk = walk(tensors, self.own, self._note, domain != "tensor")
        if isinstance(self.walk, Recall):
            self.walk.left = self.walk.left if proofs is None else proofs
            self.walk.before = before
        self.terms = Terms(self.walk, self.own, tensors)
        self._origins: dict[int, Origin] = {}
        self._bodies: list[eq.Expr] = []  # kept, so that their parts keep their ids

    # ---- results

    def run(self) -> list[Place]:
        """Evaluates the call; gives its points."""
        later: list[tuple[eq.Check, eq.Expr]] = []  # about what the call is still to compute
        for check in self.expansion.checks:
            condition = self._renamed(check.condition, {})
            if eq.reads(condition) <= self.tensors.keys():
                self._judge(check, condition)
            else:
                later.append((check, condition))
            self._required(condition)
        for step in schedule(self.expansion.equations):
            if isinstance(step, Recurrence):
                self._recurrence(step)
            else:
                self.tensors[self.names[step.target]] = self._equation(step)
        for check, condition in later:
            self._judge(check, condition)
        if not self.own.wide and self._hides() and any(map(_overflows, self.places.values())):
            self._widened()
        for output in self.expansion.outputs:
            for origin in self.tensors[self.names[output]].hull.origins:
                if origin in self.places:
                    self.places[origin].possible = True
        found = [place for place in self.places.values() if place.possible or _tells(place)]
        for place in found:
            place.reasons = self._reasons(place)
        return found

    def leaves_open(self) -> bool:
        """Whether the definition leaves open which integers some of the numbers become, once it has
        been run: there is no NaN among them that would tell.
        """
        for mask in self.expansion.unspecified:
            if self.expansion.tensors[mask.target].kind != "int":
                continue
            names = {name: own_index(axis) for axis, (name, _) in enumerate(mask.binders)}
            condition = self._renamed(mask.body, names)
            finite = all(self.tensors[name].hull.finite for name in eq.reads(condition))
            known = eq.reads(condition) and finite and 0 not in mask.info.shape
            if known and may(self.walk.plainly(condition, _box(mask.info)), True):
                return True
        return False

    @property
    def trials(self) -> Trials:
        """Where proofs brought something, and where nothing, once it has been run."""
        return self.walk.trials if isinstance(self.walk, Recall) else {}

    def _hides(self) -> bool:
        """Whether a result does not tell that something inside is too large, or tells nothing else.

        Others are taken to be any number behind the call.
        """
        hulls = (self.tensors[self.names[output]].hull for output in self.expansion.outputs)
        return any(hull.finite or not hull.pieces for hull in hulls)

    def _widened(self) -> None:
        """Adds to the results what they are where what is too large inside the call is not.

        A target may compute what is inside a call with a wider exponent, as sums of squares often
        are; then nothing is divided by an infinity.
        """
        store = dict(self.tensors)
        far = Call(
            self.node, self.number, self.definitions, store, self.domain, self.own.flush, True,
            before=together(self.before, self.trials),
        )  # fmt: skip
        far.run()
        inside = {self.names[equation.target] for equation in self.expansion.equations}
        inside -= {self.names[output] for output in self.expansion.outputs}
        for output in self.expansion.outputs:
            near, other = self.tensors[self.names[output]], store[self.names[output]]
            own = Arithmetic(near.info.dtype, self.own.flush)
            regions = []
            for region in near.regions:
                also = other.at([(low, high - 1) for low, high in region.box])
                numbers = join(region.numbers, stored(also, near.info.dtype, own))
                regions.append(Region(region.box, numbers, _without(region.term, inside)))
            body = _without(near.body, inside)
            self.tensors[self.names[output]] = Tensor(near.info, tuple(regions), body, near.reasons)
        for origin, place in far.places.items():
            mine = self.places.get(origin)
            if place.threatens and not (mine is not None and mine.threatens):
                place.possible = False
                self.places[origin] = place

    def _reasons(self, place: Place) -> list[str]:
        """Why a place is what it is: what reaches it, and the relations that were of use."""
        if place.possible:
            starved = isinstance(self.walk, Recall) and self.walk.left < 0
            told = [reasons.possible(place.function, place.operand, self.own, place.args)]
            return told + [reasons.STARVED] * starved
        found = [reasons.safe(place.function, place.operand, place.args)]
        if place.threatens:
            found.append("what it makes beyond that is finite again in the result of the call")
        read = {name for body in self._bodies for name in eq.reads(body)}
        earlier = [why for name in sorted(read) for why in self.tensors[name].reasons]
        return [*found, *dict.fromkeys((*self.walk.reasons, *earlier))][:4]

    def leave(self) -> None:
        """Lets the calls behind see the results: what this one made is no news to them.

        A target may compute what is inside a call with a wider exponent, as sums of squares often
        are, so that an overflow there is no infinity: where there is one, nothing is known of how
        large the finite results are.
        """
        overflow = any(
            place.possible and reasons.is_overflow(place.function, place.operand)
            for place in self.places.values()
        )
        fed = self.node.feeds().values()  # what it reads was left by the calls before
        for name in self.names.values():
            tensor = self.tensors.get(name)
            if tensor is None or not tensor.hull.origins or name in fed:
                continue
            regions = tuple(
                replace(
                    region,
                    numbers=(
                        region.numbers.filled(self.own.largest) if overflow else region.numbers
                    ).reported(),
                )
                for region in tensor.regions
            )
            self.tensors[name] = Tensor(tensor.info, regions, tensor.body, tensor.reasons)

    # ---- what must hold

    def _judge(self, check: eq.Check, condition: eq.Expr) -> None:
        """Keeps a precondition that the ranges alone do not imply."""
        if self.walk.decided(condition, {}) is not True:
            self.granted.append(check)

    def _required(self, condition: eq.Expr) -> None:
        """A precondition on all elements of an input holds of its range."""
        if not isinstance(condition, eq.Reduce) or condition.kind != "all":
            return
        if condition.where is not None or condition.body is None:
            return
        binders = dict(condition.binders)
        for part in conjuncts(condition.body):
            if not eq.reads(part) <= self.tensors.keys():
                continue  # about what the call is still to compute
            for read in eq.walk(part):
                if isinstance(read, eq.Read) and self._everywhere(read, binders):
                    self._restricted(read, part, condition)

    def _everywhere(self, read: eq.Read, binders: Mapping[str, eq.Expr]) -> bool:
        """Whether a read goes over all elements of a tensor."""
        names = [index.name for index in read.index if isinstance(index, eq.Index)]
        return len(set(names)) == len(read.index) and all(name in binders for name in names)

    def _restricted(self, read: eq.Read, part: eq.Expr, condition: eq.Reduce) -> None:
        tensor = self.tensors[read.tensor]
        box: dict[str, tuple[int, int]] = {}
        for name, bound in condition.binders:
            ends = self.walk.ends(bound, box, {})
            box[name] = (0, max(ends[1] - 1, 0) if ends else 0)
        facts = assume(self.walk, part, True, box, {})
        if facts and read in facts:
            regions = tuple(
                replace(region, numbers=meet(region.numbers, facts[read]))
                for region in tensor.regions
            )
            self.tensors[read.tensor] = Tensor(tensor.info, regions, tensor.body, tensor.reasons)

    # ---- equations

    def _body(self, equation: eq.Equation) -> eq.Expr:
        """The body of an equation, simplified; its operations get their places."""
        key = f"{__name__} {equation.target}"
        if key not in self.expansion.notes:
            bounds = dict(equation.binders)
            body = simplify(equation.body, bounds, self.expansion.tensors, deep=True)
            self.expansion.notes[key] = without_lone(body)
        names = {name: own_index(axis) for axis, (name, _) in enumerate(equation.binders)}
        body = settled(self._renamed(self.expansion.notes[key], names))
        self._bodies.append(body)
        for count, part in enumerate(eq.walk(body)):
            self._origins[id(part)] = (equation.target, count)
        self.walk.origins = self._origins
        return body

    def _renamed(self, expr: eq.Expr, indices: Mapping[str, str]) -> eq.Expr:
        """With the names that tensors have in the graph, and indices that occur nowhere else."""
        if isinstance(expr, eq.Index):
            return eq.Index(indices.get(expr.name, f"{expr.name}@{self.number}"))
        made = eq.rebuild(expr, lambda part: self._renamed(part, indices))
        if isinstance(made, (eq.Read, eq.Inside)):
            return replace(made, tensor=self.names[made.tensor])
        if isinstance(made, eq.Reduce):
            binders = tuple((f"{name}@{self.number}", bound) for name, bound in made.binders)
            return replace(made, binders=binders)
        return made

    def _equation(self, equation: eq.Equation) -> Tensor:
        if 0 in equation.info.shape:
            return whole(equation.info, NOTHING)
        body = self._body(equation)
        found = merged(equation.info, self._regions(equation, body, _box(equation.info), True))
        if self._worth_knowing(equation, body) or _counts(body) or is_place(body):
            found.body = taken(body, _box(equation.info), self.walk.decided)
        if self.domain == "relations" and self._is_whole(equation, body):
            found.written = taken(body, _box(equation.info), self.walk.decided)
        if self.domain == "relations" and equation.info.dtype == self.own.row.name:
            reads = {name: self.tensors[name] for name in sorted(eq.reads(body))}
            found.span = Span(body, _box(equation.info), reads, self.own)
        found.reasons = tuple(dict.fromkeys(self.walk.reasons))
        return found

    def _regions(
        self, equation: eq.Equation, body: eq.Expr, box: Limits, terms: bool
    ) -> list[Region]:
        """What the equation gives, box by box. terms: whether its elements are worth knowing."""
        names = list(box)
        self.walk.forget()
        split, related = self.domain != "tensor", self.domain == "relations"
        regions = []
        for one in parted(body, box, self.tensors) if split else [dict(box)]:
            self._box = tuple((one[name][0], one[name][1] + 1) for name in names)
            found = stored(self.walk.value(body, one, {}), equation.info.dtype, self.own)
            term = self.terms.of(body, one, equation.info) if terms and related else None
            regions.append(Region(self._box, found, term))
        return regions

    def _recurrence(self, group: Recurrence) -> None:
        """Step by step where it is short; else all steps at once until nothing is new."""
        bodies = [self._body(equation) for equation in group.equations]
        boxes = []
        for equation in group.equations:
            self.tensors[self.names[equation.target]] = Tensor(equation.info, ())
            boxes.append(_box(equation.info))
        if any(0 in equation.info.shape for equation in group.equations):
            return
        parts = list(zip(group.equations, bodies, boxes, group.axes, strict=True))
        if group.length <= _STEPS and self.domain != "tensor":
            order = range(group.length)
            for step in reversed(order) if group.descending else order:
                for equation, body, box, axis in parts:
                    if step >= equation.info.shape[axis]:
                        continue
                    at = {**box, own_index(axis): (step, step)}
                    target = self.names[equation.target]
                    old = self.tensors[target].regions
                    new = self._regions(equation, body, at, True)
                    self.tensors[target] = Tensor(equation.info, (*old, *new))
            for equation, body, _, axis in parts:
                target = self.names[equation.target]
                self.tensors[target] = merged(equation.info, self.tensors[target].regions)
                self._keep_step(group, equation, body, axis)
            return
        steps = Steps(self.walk, self.tensors, group.length, group.descending)
        for equation, body, box, axis in parts:
            name = self.names[equation.target]
            steps.add(name, equation, body, box, axis, self._worth_knowing(equation, body))
        self.walk.stepping = True
        steps.run()
        # what goes wrong is told once what any step may read is known, all that is finite of it
        known = {step.name: self.tensors[step.name] for step in steps.steps}
        finite = all(tensor.hull.finite for tensor in known.values())
        if not finite:
            self.tensors.update({name: tensor.finite() for name, tensor in known.items()})
        with steps.proofs(last=True):
            made = {s.name: self._regions(s.equation, s.body, s.box, False) for s in steps.steps}
        self.walk.stepping = False
        if finite:
            for one in steps.steps:
                most = known[one.name].hull
                regions = [
                    replace(r, numbers=meet(r.numbers, most), term=one.term) for r in made[one.name]
                ]
                self.tensors[one.name] = merged(one.equation.info, regions)
        else:
            self.tensors.update(known)
        for equation, body, _, axis in parts:
            self._keep_step(group, equation, body, axis)

    def _keep_step(
        self, group: Recurrence, equation: eq.Equation, body: eq.Expr, axis: int
    ) -> None:
        """Keeps what an element of a recurrence is by the one before, and what follows of all."""
        name = self.names[equation.target]
        tensor = self.tensors[name]
        whole = self.domain == "relations" and self._is_whole(equation, body)
        told = whole or self._worth_knowing(equation, body)
        if not told or group.descending or not tensor.hull.finite:
            return
        tensor.step = axis, body
        total = self.walk.total_of_run(name) if tensor.hull.high > 1 else None
        if total is None or total == tensor.hull:
            return
        last = tensor.info.shape[axis] - 1
        before = Numbers(((-total.magnitude, total.high),))
        regions = []
        for one in tensor.regions:
            first, end = one.box[axis]
            for part in ((first, min(end, last)), (max(first, last), end)):
                if part[0] < part[1]:
                    box = (*one.box[:axis], part, *one.box[axis + 1 :])
                    known = meet(one.numbers, total if part[0] == last else before)
                    regions.append(replace(one, box=box, numbers=known))
        made = merged(equation.info, regions)
        made.step = tensor.step
        self.tensors[name] = made

    def _worth_knowing(self, equation: eq.Equation, body: eq.Expr) -> bool:
        """Whether an element is what the equation says, in the call's type, and that is short."""
        known = self.domain == "relations" and equation.info.dtype in (self.own.row.name, "bool")
        return known and small(body)

    def _is_whole(self, equation: eq.Equation, body: eq.Expr) -> bool:
        """Whether an element is a whole number by what the equation says, or one made real."""
        copied = isinstance(body, eq.Read) and self.tensors[body.tensor].info.kind == "int"
        return copied or (equation.info.kind == "int" and small(body))

    # ---- places

    def _note(
        self, expr: eq.Expr, function: str, operand: Numbers, makes: bool, args: Sequence[Numbers]
    ) -> None:
        origin = self._origins.get(id(expr))
        if origin is None:
            return
        place = self.places.get(origin)
        if place is None:
            place = self.places[origin] = Place(origin[0], function, NOTHING, box=self._box)
        if makes and not place.threatens:
            place.threatens, place.operand, place.box = True, NOTHING, self._box
            place.args = ()
        if makes or not place.threatens:
            place.operand = join(place.operand, operand)
            place.args = tuple(map(join, place.args, args)) if place.args else tuple(args)
        if makes and function == "index":
            place.possible = True

    _box: tuple[tuple[int, int], ...] = ()


def _box(info: eq.TensorInfo) -> dict[str, tuple[int, int]]:
    """All indices of a tensor."""
    return {own_index(axis): (0, size - 1) for axis, size in enumerate(info.shape)}


def _overflows(place: Place) -> bool:
    """Whether something inside a call may be too large for its type, whatever comes of it."""
    return place.threatens and reasons.is_overflow(place.function, place.operand)


def _without(term: eq.Expr | None, inside: Set[str]) -> eq.Expr | None:
    """What an element is, unless that hangs on what may have been another number."""
    return None if term is not None and eq.reads(term) & inside else term


def _counts(body: eq.Expr) -> bool:
    """Whether a whole number says how many there are of something: the rank of a sorted element."""
    return isinstance(body, eq.Reduce) and body.kind == "count" and small(body)


def _tells(place: Place) -> bool:
    """Whether a safe place is worth a word: the function has gaps or grows beyond bounds."""
    return place.function in SCALARS and _risky(place.function)


_RISKY: dict[str, bool] = {}


def _risky(function: str) -> bool:
    """Whether a function gives NaN or Inf for some numbers of moderate size."""
    if function not in _RISKY:
        row = SCALARS[function]
        moderate = [Numbers(((-1000.0, 1000.0),))] * row.arity
        real = row.kind == "real"
        _RISKY[function] = real and Arithmetic("f32").apply(function, moderate, "real")[1]
    return _RISKY[function]
