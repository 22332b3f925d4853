"""One operator as a page of HTML that needs nothing else: no script, no network, any width."""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape
from typing import Any

from irlang import ast
from irlang.catalog import Catalog
from irlang.docs.facts import describe
from irlang.mathematics import mathml
from irlang.mathematics.definition import condition

# Light or dark as the reader has it; what is wide scrolls by itself. Mathematics needs a font with
# stretching braces, of which every system has one.
STYLE = """
:root { color-scheme: light dark; --ink: #1d1f23; --soft: #5c6370; --line: #d9dce1; --back: #fff;
  --code: #f4f5f7; --mark: #0b57d0; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e4e6ea; --soft: #9aa1ad; --line: #3a3f47; --back: #16181c; --code: #1f2227;
    --mark: #8ab4f8; }
}
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1rem 1rem 4rem; max-width: 62rem; color: var(--ink);
  background: var(--back); font: 1rem/1.55 system-ui, sans-serif; }
h1 { margin: .5rem 0; font-size: 1.8rem; } h1 small { color: var(--soft); font-weight: 400;
  font-size: 1rem; }
h2 { margin: 2rem 0 .5rem; font-size: 1.15rem; border-bottom: 1px solid var(--line); }
pre, .mathematics, .wide { overflow-x: auto; }
pre { padding: .8rem 1rem; background: var(--code); border-radius: .4rem; line-height: 1.4; }
code, pre { font-family: ui-monospace, monospace; font-size: .9em; }
table { border-collapse: collapse; } .wide td, .wide th { padding: .3rem .9rem .3rem 0;
  text-align: left; vertical-align: top; border-bottom: 1px solid var(--line); }
math { font-family: "Latin Modern Math", "STIX Two Math", "Cambria Math", "DejaVu Math TeX Gyre",
  math; font-size: 1.08em; }
.mathematics mtd { padding: .34em .12em; } .mathematics mtd mtd { padding: .16em .4em; }
.soft { color: var(--soft); } code.kind { color: var(--mark); }
"""


# For notebooks, which have colours of their own: mathematics alone.
NOTEBOOK_STYLE = """
.irlang math { font-family: "Latin Modern Math", "STIX Two Math", "Cambria Math",
  "DejaVu Math TeX Gyre", math; } .irlang .mathematics, .irlang .wide { overflow-x: auto; }
.irlang .mathematics mtd { padding: .34em .12em; text-align: left; }
.irlang .mathematics mtd mtd { padding: .16em .4em; }
"""


def fragment(inside: str) -> str:
    """A piece of a notebook."""
    return f'<div class="irlang"><style>{NOTEBOOK_STYLE}</style>{inside}</div>'


def page(op: ast.Op, catalog: Catalog) -> str:
    """The page of an operator."""
    found = describe(op, catalog)
    title = f"{op.name} · irlang"
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{escape(title)}</title><style>{STYLE}</style></head><body>",
        f"<h1>{escape(op.name)} <small>{escape(found['family'])}</small></h1>",
        body(op, found),
        "</body></html>",
    ]
    return "\n".join(parts) + "\n"


def body(op: ast.Op, found: dict[str, Any]) -> str:
    """What there is to say, by sections; those without content are left out."""
    sections = [
        ("", _doc(found["doc"]) + f"<p><code>{escape(found['signature'])}</code></p>"),
        ("Definition", f"<pre>{escape(found['definition'])}</pre>"),
        ("Mathematics", found["mathematics"]["mathml"]),
        ("Attributes", _attributes(found["attributes"])),
        ("Preconditions", _preconditions(op, found["preconditions"])),
        ("Ensured", _ensured(found["ensured"])),
        ("Element types", _dtypes(found["types"])),
        ("Lowers to", _lowering(found["lowering"])),
        ("Differs", _differs(found["differs"])),
        ("Gradient", _gradient(found["gradient"])),
    ]
    shown = [
        f"<section>{f'<h2>{title}</h2>' if title else ''}{text}</section>"
        for title, text in sections
        if text
    ]
    return "\n".join(shown)


def _doc(doc: str) -> str:
    paragraphs = (" ".join(part.split()) for part in doc.strip().split("\n\n"))
    return "".join(f"<p>{marked(part)}</p>" for part in paragraphs if part)


def marked(text: str) -> str:
    """Text with what stands between backticks as code."""
    return re.sub(r"`([^`]*)`", r"<code>\1</code>", escape(text))


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    top = "".join(f"<th>{name}</th>" for name in head)
    lines = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    return f'<div class="wide"><table><tr>{top}</tr>{lines}</table></div>' if lines else ""


def _code(text: str) -> str:
    return f"<code>{escape(text)}</code>"


def _attributes(attributes: list[dict[str, Any]]) -> str:
    return _table(
        ("attribute", "type", "default"),
        (
            (
                _code(a["name"]),
                f'<code class="kind">{escape(a["type"])}</code>',
                '<span class="soft">must be given</span>'
                if a["default"] is None
                else _code(a["default"]),
            )
            for a in attributes
        ),
    )


def _preconditions(op: ast.Op, found: list[dict[str, str]]) -> str:
    requires = [s for s in op.body if isinstance(s, ast.Require)]
    return _table(
        ("code", "condition", "or else"),
        (
            (_code(p["code"]), mathml.inline(condition(op, s.condition)), escape(p["message"]))
            for s, p in zip(requires, found, strict=True)
        ),
    )


def _ensured(found: list[dict[str, str]]) -> str:
    return _table(
        ("code", "condition", "or else"),
        ((_code(e["code"]), _code(e["condition"]), escape(e["message"])) for e in found),
    )


def _dtypes(types: dict[str, list[str]]) -> str:
    return _table(
        ("variable", "stands for"),
        ((_code(variable), " ".join(map(_code, names))) for variable, names in types.items()),
    )


def _lowering(found: list[dict[str, Any]]) -> str:
    return _table(
        ("target", "runs"), ((_code(way["target"]), escape(way["text"])) for way in found)
    )


def _differs(found: list[dict[str, str]]) -> str:
    return _table(("", ""), ((escape(d["of"]), marked(d["how"])) for d in found))


def _gradient(found: dict[str, Any]) -> str:
    if "reason" in found:
        return f"<p>None: {marked(found['reason'])}.</p>"
    head = f"<p>Of <code>{escape(found['call'])}</code>:</p>"
    text = (
        f"<details><summary>as text</summary><pre>{escape(found['text'].rstrip())}</pre></details>"
    )
    return f"{head}{found['mathml']}{text}"
