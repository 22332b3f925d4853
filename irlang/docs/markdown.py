"""`docs/operators.md` and `docs/operators/FAMILY.md`, written from the definitions.

Everything on the pages is read off the text of a definition or tried on calls of it, so that they
cannot say anything else. A family has a page of its own: sites that show Markdown do not show very
large files.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from irlang import ast
from irlang.catalog import Catalog
from irlang.docs import facts
from irlang.docs.calls import calls
from irlang.docs.lowering import lowerings
from irlang.mathematics import latex
from irlang.mathematics.definition import mathematics

_CALLS = 8  # tried on every target
_LONGEST = 30  # lines of a gradient that are shown

_NOTE = "<!-- Written by `python -m irlang.docs` from irlang/ops/*.nnir; do not edit. -->"

_INDEX = """# Operators

{note}

{count} operators, each defined by a text that is all there is to it;
[language.md](language.md) says how to read one. A precondition's name is the code of the diagnostic
that a violation gets. `irlang ops NAME` shows an operator, `irlang ops --coverage` what works for
which.
"""

_FAMILY = """# Family `{family}`

{note}

[All operators](../operators.md). In the mathematics, bold letters stand for one index or one size
an axis, indices count from 0 to their bound, and a value "inside x" is one that exists. What a
target runs was tried on calls of the operator; `irlang ops NAME` says under which conditions.
"""


def pages(catalog: Catalog) -> dict[str, str]:
    """The pages by path, relative to the folder of `operators.md`."""
    index = [_INDEX.format(count=len(catalog), note=_NOTE)]
    found: dict[str, str] = {}
    for family, names in sorted(catalog.families().items()):
        links = " · ".join(f"[{name}](operators/{family}.md#{name})" for name in names)
        index.append(f"**[{family}](operators/{family}.md)**: {links}\n")
        own = " · ".join(f"[{name}](#{name})" for name in names)
        head = _FAMILY.format(family=family, note=_NOTE)
        found[f"operators/{family}.md"] = "\n".join(
            [head, f"{own}\n", *(section(op, catalog) for op in map(catalog.op, names) if op)]
        )
    return {"operators.md": "\n".join(index), **found}


def write(catalog: Catalog, index: Path) -> list[Path]:
    """Writes the index to the path that is named, and the pages of families beside it.

    Gives the paths whose contents are others than before.
    """
    folder = index.parent / "operators"
    folder.mkdir(parents=True, exist_ok=True)
    written = pages(catalog)
    changed = []
    for name, text in written.items():
        path = index if name == "operators.md" else index.parent / name
        if not path.exists() or path.read_text("utf-8") != text:
            path.write_text(text, "utf-8")
            changed.append(path)
    for page in folder.glob("*.md"):  # of families that there are no more
        if f"operators/{page.name}" not in written:
            page.unlink()
            changed.append(page)
    return changed


def section(op: ast.Op, catalog: Catalog) -> str:
    """What there is to say about one operator."""
    lines = [f"## {op.name}", ""]
    if op.doc:
        lines += [op.doc.strip(), ""]
    lines += [f"`{facts.signature(op)}`", ""]
    lines += ["```nnir", facts.definition(op), "```", ""]
    for display in latex.displays(mathematics(op)):
        lines += ["```math", display, "```", ""]
    if op.attrs:
        lines += ["| attribute | type | default |", "| --- | --- | --- |"]
        lines += map(_attribute, facts.attributes(op))
        lines.append("")
    preconditions = facts.preconditions(op)
    if preconditions:
        lines += ["Preconditions:", ""]
        lines += [f"- `{p['code']}`: `{p['condition']}`, or else: {p['message']}"
                  for p in preconditions]  # fmt: skip
        lines.append("")
    ensured = facts.ensured(op)
    if ensured:
        lines += ["Ensured of every right result:", ""]
        lines += [f"- `{e['code']}`, or else: {e['message']}" for e in ensured]
        lines.append("")
    graphs = calls(op, catalog, _CALLS)
    ways = lowerings(op, catalog, graphs)
    if ways:
        lines += ["| target | runs |", "| --- | --- |"]
        lines += [f"| {way.target} | {_cell(way.sentence())} |" for way in ways]
        lines.append("")
    lines += [*_gradient(facts.gradient_facts(op, catalog, graphs), op.name), ""]
    return "\n".join(lines)


def _gradient(found: dict[str, Any], name: str) -> list[str]:
    if "reason" in found:
        return [f"Gradient: none; {found['reason']}."]
    head = f"Gradient ({', '.join(f'`{output}`' for output in found['outputs'])})"
    text = found["text"].rstrip()
    if text.count("\n") >= _LONGEST:
        return [f"{head}: `irlang ops {name} --gradient`."]
    shown = ["```text", found["call"], "", text, "```"]
    return ["<details>", f"<summary>Gradient of one call: {_plain(found['outputs'])}</summary>",
            "", *shown, "", "</details>"]  # fmt: skip


def _plain(names: list[str]) -> str:
    return ", ".join(names)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _attribute(attr: dict[str, Any]) -> str:
    default = "must be given" if attr["default"] is None else f"`{_cell(attr['default'])}`"
    return f"| `{attr['name']}` | `{attr['type']}` | {default} |"
