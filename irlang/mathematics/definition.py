"""A definition as mathematics: types, equations, what is abbreviated in them, and remarks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from irlang import ast
from irlang.mathematics.build import Bound, Builder, lists_of
from irlang.mathematics.form import (
    Element,
    Form,
    Line,
    Mathematics,
    Sign,
    Words,
    listed,
    row,
)
from irlang.mathematics.notation import fenced, infix, mark, symbol


def mathematics(op: ast.Op) -> Mathematics:
    """What a definition says, as mathematics."""
    types = {output.name: output.type for output in op.outputs}
    places = {
        statement.name: tuple(_bounds(statement, types).values())
        for statement in op.body
        if isinstance(statement, ast.Equation)
    }
    macros = [s.name for s in op.body if isinstance(s, ast.Let) and s.params]
    build = Builder(lists_of(op), places, macros)
    equations: list[Line] = []
    where: list[Line] = []
    remarks: list[Form] = []
    for statement in op.body:
        match statement:
            case ast.Equation():
                equations.append(_equation(statement, build, types))
            case ast.Assign():
                targets = listed([symbol(target) for target in statement.targets])
                equations.append(Line(targets, "=", build.form(statement.value)))
            case ast.Let():
                where.append(_let(statement, build))
            case ast.Some():
                if statement.law is None:
                    remarks.append(row(symbol(statement.name), Words(" is one right result")))
                    continue
                where.append(Line(symbol(statement.name), "∈", build.space(statement.type)))
                follows = Words(" is drawn, element by element, from ")
                remarks.append(row(symbol(statement.name), follows, build.form(statement.law)))
            case ast.Ensure():
                held = build.form(statement.condition)
                remarks.append(row(Words(f"{statement.name}: "), held))
            case ast.Unspecified():
                left = _place(statement)
                inner = build.scope(_bounds(statement, types))
                condition = inner.form(statement.condition)
                remarks.append(row(left, Words(" is unspecified if "), condition))
    for number, note in enumerate(build.notes, 1):
        where.append(Line(mark(number), "⇔", note))
    given = [_input(item, build) for item in op.inputs]
    given += [_output(item, build) for item in op.outputs]
    return Mathematics(tuple(given), tuple(equations), tuple(where), tuple(remarks))


def of_equations(equations: Sequence[ast.Equation]) -> Mathematics:
    """Equations that belong to no definition, such as those of a gradient."""
    build = Builder()
    lines = tuple(_equation(equation, build, {}) for equation in equations)
    return Mathematics((), lines, (), ())


def _input(item: ast.Input, build: Builder) -> Line:
    over: Form | None = None
    if item.default is not None:
        absent = row(Words("absent: "), build.form(item.default))
        over = absent
    left: Form = symbol(item.name)
    if item.family:
        left = Element(left, (), symbol(item.family))
        count = row(Sign("#", "prefix"), symbol(item.name))
        over = row(symbol(item.family), infix("<", "relation"), count)
    return Line(left, "∈", build.space(item.type), over)


def _output(item: ast.Output, build: Builder) -> Line:
    left: Form = symbol(item.name)
    over: Form | None = None
    if item.family and item.count is not None:
        left = Element(left, (), symbol(item.family))
        over = row(symbol(item.family), infix("<", "relation"), build.form(item.count))
    return Line(left, "∈", build.space(item.type), over)


def _bounds(
    statement: ast.Equation | ast.Unspecified, types: Mapping[str, ast.TensorType]
) -> dict[str, Bound]:
    """What the indices on a left side are less than: said there, or by the type of the result."""
    type_ = types.get(statement.name)
    dims = type_.dims if type_ is not None else ()
    sizes = [dim.size for dim in dims] if len(dims) == len(statement.index) else []
    found: dict[str, Bound] = {}
    for number, index in enumerate(statement.index):
        bound = index.bound or (sizes[number] if sizes else ast.Name(f"?{index.name}"))
        found[index.name] = (bound, index.rest)
    return found


def _place(statement: ast.Equation | ast.Unspecified) -> Form:
    """The left side."""
    parts = tuple(symbol(index.name, bold=index.rest) for index in statement.index)
    member = statement.member if isinstance(statement, ast.Equation) else ""
    own = symbol(member) if member else None
    return Element(symbol(statement.name), parts, own) if parts or own else symbol(statement.name)


def _equation(statement: ast.Equation, build: Builder, types: Mapping[str, ast.TensorType]) -> Line:
    inner = build.scope(_bounds(statement, types))
    bounds: list[Form] = [
        build.binder(ast.Binder(index.name, index.bound, index.rest))
        for index in statement.index
        if index.bound is not None
    ]
    over = listed(bounds) if bounds and statement.name not in types else None
    relation = "⇔" if _is_condition(statement.value) else "="
    return Line(_place(statement), relation, inner.form(statement.value), over)


def _is_condition(value: ast.Expr) -> bool:
    match value:
        case ast.Chain():
            return True
        case ast.Binary():
            return value.op in ("and", "or", "in")
        case ast.Unary():
            return value.op == "not"
        case ast.Reduce():
            return value.kind in ("all", "any")
        case ast.Call():
            return value.function in ("isnan", "isinf")
    return False


def _let(statement: ast.Let, build: Builder) -> Line:
    relation = "⇔" if _is_condition(statement.value) else "="
    if not statement.params:
        return Line(build.name(statement.name), relation, build.form(statement.value))
    lists = {node.name for node in ast.walk(statement.value) if isinstance(node, ast.Read)} & set(
        statement.params
    )
    inner = build.function(lists, set(statement.params) - lists)
    names = listed([inner.name(param) for param in statement.params])
    left = row(symbol(statement.name), fenced(names))
    return Line(left, relation, inner.form(statement.value))


def condition(op: ast.Op, node: ast.Expr) -> Form:
    """A condition of a definition as mathematics."""
    macros = [s.name for s in op.body if isinstance(s, ast.Let) and s.params]
    return Builder(lists_of(op), {}, macros).form(node)
