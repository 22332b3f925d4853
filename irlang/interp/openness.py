"""What is wrong with a definition that leaves values open, or says what holds of them.

An `ensure` judges results of which the target's own values are all that is known: it cannot read
what is drawn. So it reads results, inputs, sizes and attributes, and what follows from those.
"""

from __future__ import annotations

from irlang import ast
from irlang.diagnostics import Diagnostic, Span
from irlang.laws import LAWS


def open_faults(op: ast.Op) -> list[Diagnostic]:
    """The faults of the `some` and `ensure` statements of a definition."""
    found: list[Diagnostic] = []
    somes = [s for s in op.body if isinstance(s, ast.Some)]
    ensures = [s for s in op.body if isinstance(s, ast.Ensure)]
    outputs = {output.name for output in op.outputs}
    drawn = {s.name for s in somes if s.law is not None} - outputs

    def report(code: str, message: str, span: Span, help: str) -> None:
        found.append(Diagnostic(f"definition.{code}", message, span, node=op.name, help=help))

    for some in somes:
        if some.law is not None and some.name in outputs:
            message = f"`{some.name}` is a result: its equation says what it is"
            report("some", message, some.span, "draw another value, and let the equation read it")
        elif some.law is None and some.name not in outputs:
            message = f"nothing says what `{some.name}` may be"
            help_ = f"name a law, as `some {some.name}: … = uniform(0, 1)`, or a result"
            report("some", message, some.span, help_)
        elif (
            some.law is not None
            and not any(
                some.name in _said(s) for s in op.body if isinstance(s, (ast.Equation, ast.Assign))
            )
            and not any(some.name in _said(s) for s in op.body if isinstance(s, ast.Let))
        ):
            message = f"`{some.name}` is never read"
            report("some", message, some.span, "remove it, or let an equation read it")
        if not ensures:
            message = f"nothing is ensured where `{some.name}` is left open"
            help_ = 'say what holds of every right result: `ensure NAME: condition else "…"`'
            report("ensure", message, some.span, help_)
    for ensure in ensures:
        for call in _misplaced(ensure.condition):
            message = f"`{call.function}` judges a statistic by itself"
            help_ = "join it to others by `and`, or by `all` over axes"
            report("law", message, call.span, help_)
        reads = _reached(op, ensure)
        if not somes and not any(isinstance(s, ast.Unspecified) for s in op.body):
            message = f"`{ensure.name}` ensures what is determined: nothing is left open"
            help_ = "say so with `require`, or with `some` or `unspecified` what is left open"
            report("ensure", message, ensure.span, help_)
        elif hidden := sorted(reads & drawn):
            message = f"`{ensure.name}` reads `{hidden[0]}`, which no target gives"
            help_ = "say it of the results, the inputs and the attributes"
            report("ensure", message, ensure.span, help_)
        elif not reads & outputs:
            message = f"`{ensure.name}` says nothing of a result"
            help_ = f"it has to read {' or '.join(f'`{name}`' for name in sorted(outputs))}"
            report("ensure", message, ensure.span, help_)
    return found


def _misplaced(node: ast.Expr) -> list[ast.Call]:
    """The laws of a condition that are no part of what must hold as a whole."""
    if isinstance(node, ast.Binary) and node.op == "and":
        return _misplaced(node.left) + _misplaced(node.right)
    if isinstance(node, ast.Reduce) and node.kind == "all" and node.body is not None:
        return _misplaced(node.body)
    own = isinstance(node, ast.Call) and node.function in LAWS
    parts = (part for part in ast.walk(node) if part is not node or not own)
    return [part for part in parts if isinstance(part, ast.Call) and part.function in LAWS]


def _said(node: ast.Node) -> set[str]:
    """The names in a piece of text."""
    names = set()
    for part in ast.walk(node):
        match part:
            case ast.Name() | ast.Rest():
                names.add(part.id)
            case ast.Read() | ast.Arity():
                names.add(part.name)
            case ast.Call():
                names.add(part.function)
    return names


def _reached(op: ast.Op, ensure: ast.Ensure) -> set[str]:
    """The names that a condition reads, by itself or by way of `let`s and equations.

    Results are where it ends: a target gives them.
    """
    outputs = {output.name for output in op.outputs}
    texts: dict[str, ast.Expr] = {}
    for statement in op.body:
        if isinstance(statement, (ast.Let, ast.Equation)) and statement.name not in outputs:
            texts[statement.name] = statement.value
        elif isinstance(statement, ast.Assign):
            texts.update((t, statement.value) for t in statement.targets if t not in outputs)
    found = _said(ensure.condition)
    pending = list(found)
    while pending:
        text = texts.get(pending.pop())
        more = _said(text) - found if text is not None else set()
        found |= more
        pending += more
    return found
