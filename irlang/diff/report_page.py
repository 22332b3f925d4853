"""A campaign as one page of HTML that needs nothing else: no script, no network, any width."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import quote

from irlang.catalog import Catalog, builtin
from irlang.diagnostics import InvalidInput
from irlang.diff.report_graph import svg
from irlang.diff.report_words import together
from irlang.diff.verdict import FINDINGS, SEVERITY, worded, worst_first
from irlang.docs.page import STYLE
from irlang.interp.shape import check
from irlang.lower.message import plain
from irlang.parser import parse
from irlang.parser.source import read_source

_STYLE = """
.numbers { display: flex; flex-wrap: wrap; gap: .4rem 2rem; margin: 1rem 0; padding: 0; }
.numbers div { min-width: 6rem; } .numbers b { display: block; font-size: 1.6rem; }
.wide .number { text-align: right; font-variant-numeric: tabular-nums; }
.bad { color: var(--bad); font-weight: 600; } :root { --bad: #b3261e; --badback: #fbeae9; }
@media (prefers-color-scheme: dark) { :root { --bad: #f2b8b5; --badback: #4a1f1c; } }
article { margin: 1.5rem 0; padding: 0 1rem 1rem; border: 1px solid var(--line);
  border-radius: .5rem; } article h3 { font-size: 1.05rem; overflow-wrap: anywhere; }
.tag { padding: .1rem .5rem; border-radius: 1rem; background: var(--badback); color: var(--bad);
  font-size: .85rem; font-weight: 600; }
.beside { display: flex; flex-wrap: wrap; gap: 1rem 2rem; align-items: flex-start; }
.beside > * { min-width: 0; max-width: 100%; } .drawing { overflow-x: auto; }
svg { max-width: 100%; height: auto; } svg text { fill: var(--ink); text-anchor: middle;
  font: 13px ui-monospace, monospace; } svg .type { fill: var(--soft); font-size: 11px;
  paint-order: stroke; stroke: var(--back); stroke-width: 4px; }
svg rect { fill: var(--code); stroke: var(--soft); } svg rect.given { fill: var(--back); }
svg rect.culprit { fill: var(--badback); stroke: var(--bad); stroke-width: 2; }
svg .edge { stroke: var(--soft); fill: none; } a { color: var(--mark); }
meter { width: 6rem; }
@media (max-width: 34rem) { .wide { font-size: .85rem; } .wide td, .wide th {
  padding-right: .5rem; } article { padding: 0 .7rem .7rem; } pre { padding: .6rem .7rem; } }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .1rem 1rem; }
dt { color: var(--soft); } dd { margin: 0; overflow-wrap: anywhere; }
"""
_LONGEST = 20_000  # characters of a program's text
_MOST = 16  # elements that are shown beside each other


def page(
    folder: Path, report: Mapping[str, Any], targets: Mapping[str, str], place: Path | None = None
) -> str:
    """The page. report: as `irlang fuzz --format json` has it; targets: versions by name; place:
    the folder that the page is for, by default the campaign's.
    """
    there = quote(Path(os.path.relpath(folder, place or folder)).as_posix())
    title = f"Campaign {report['seed']}"
    findings = worst_first(report["findings"])
    inside = [
        f"<h1>{title} <small>irlang</small></h1>",
        _numbers(report),
        "<h2>Verdicts</h2>", _verdicts(report["targets"], targets),
        f"<h2>Findings</h2>{_index(findings)}",
        *(_finding(folder, one, there) for one in findings),
        "<h2>Coverage</h2>", _coverage(report["coverage"], builtin()),
    ]  # fmt: skip
    return plain(
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{title} · irlang</title><style>{STYLE}{_STYLE}</style></head>"
        f"<body>{''.join(inside)}</body></html>\n"
    )


def _numbers(report: Mapping[str, Any]) -> str:
    covered = report["coverage"]
    aside = report.get("aside", 0)  # a report of an older irlang does not say
    rate = (report["programs"] + aside) / report["seconds"] if report["seconds"] else 0.0
    told = [
        (f"{report['programs']:,}", "programs"), (f"{aside:,}", "small ones"),
        (f"{report['seconds']:.0f} s", "of time"), (f"{rate:.1f}", "of both a second"),
        (str(len(report["findings"])), "findings"),
        (f"{covered['operators']} of {covered['of']}", "operators"),
    ]  # fmt: skip
    cells = "".join(f"<div><b>{escape(n)}</b>{escape(what)}</div>" for n, what in told)
    known = "".join(f"<p>{count} known: {escape(reason)}</p>"
                    for reason, count in report.get("known", {}).items())  # fmt: skip
    return f'<div class="numbers">{cells}</div>{known}'


def _verdicts(counts: Mapping[str, Mapping[str, int]], versions: Mapping[str, str]) -> str:
    shown = [v for v in SEVERITY if any(row.get(v) for row in counts.values())]
    rows = []
    for target, row in counts.items():
        cells = [_count(row.get(v, 0), v in FINDINGS) for v in shown]
        name = f"{escape(target)} <span class=soft>{escape(versions.get(target, ''))}</span>"
        rows.append(f"<tr><td>{name}</td>{''.join(cells)}</tr>")
    return _table(["target", *(f"#{verdict}" for verdict in shown)], rows)


def _count(number: int, bad: bool) -> str:
    kind = "number bad" if bad and number else "number"
    return f'<td class="{kind}">{number:,}</td>'


def _table(heads: Sequence[str], rows: Iterable[str]) -> str:
    """A table; `#` stands before the heading of a column of numbers."""
    head = "".join(
        f"<th class=number>{escape(h[1:])}</th>" if h.startswith("#") else f"<th>{escape(h)}</th>"
        for h in heads
    )
    return f'<div class="wide"><table><tr>{head}</tr>{"".join(rows)}</table></div>'


def _index(findings: Sequence[Mapping[str, Any]]) -> str:
    if not findings:
        return "<p>None: no target disagrees with the oracle.</p>"
    rows = [
        f'<tr><td><a href="#{escape(f["id"])}">{escape(f["id"])}</a></td>'
        + "".join(
            f"<td>{escape(s)}</td>"
            for s in (together(str(f["operator"]).split(" + ")), worded(f), str(f["target"]))
        )
        + f'<td class="number">{f["operators"]}</td><td class="number">'
        f"{f.get('elements', '')}</td></tr>"
        for f in findings
    ]
    return _table(["finding", "operator", "verdict", "target", "#calls", "#elements"], rows)


def _finding(folder: Path, found: Mapping[str, Any], there: str) -> str:
    """A finding; there: the way from the page to the campaign's folder."""
    own = folder / str(found["id"])
    text, drawing = _program(own / "finding.nnir", str(found["operator"]))
    name = escape(str(found["id"]))
    links = " · ".join(
        f'<a href="{escape(there)}/{name}/{escape(path.name)}">{escape(path.name)}</a>'
        for path in sorted(own.glob("*"))
        if path.suffix in (".py", ".md", ".nnir")
    )
    others = "; ".join(f"{t} {v}" for t, v in found.get("others", {}).items())
    said = "invalid as" if found["verdict"] == "accepted" else "said"
    where = f"{found['target']} {found.get('version', '')}"
    facts = [("verdict", worded(found)), ("target", where), ("operator", found["operator"]),
             ("others", others), (said, str(found["message"])[:400]),
             ("seed", found["seed"])]  # fmt: skip
    told = "".join(
        f"<dt>{escape(key)}</dt><dd>{escape(str(value))}</dd>" for key, value in facts if value
    )
    return (
        f'<article id="{name}"><h3>{name} <span class="tag">{escape(str(found["verdict"]))}'
        f"</span> {escape(str(found.get('title', found['operator'])))}</h3>"
        f'<div class="beside"><div class="drawing">{drawing}</div><div><dl>{told}</dl>'
        f"{_values(found)}</div></div><pre>{escape(text)}</pre><p>{links}</p></article>"
    )


def _program(path: Path, operator: str) -> tuple[str, str]:
    """The text of a program and its drawing."""
    try:
        text = read_source(path)
        checked = check(parse(text, str(path)), builtin())
    except InvalidInput:
        return "", ""
    text = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}\n…"
    if not checked.graphs:
        return text, ""
    return text, svg(checked.graphs[0], operator.split(" + "))


def _values(found: Mapping[str, Any]) -> str:
    """What was expected and what was got, element by element."""
    tables = []
    for name, wanted in found.get("expected", {}).items():
        left, right = _elements(wanted), _elements(found.get("got", {}).get(name, ""))
        outside = found.get("outside", {}).get(name, [])
        if len(left) == len(right) and 0 < len(left) <= _MOST:
            rows = [
                _pair(number, a, b, number in outside)
                for number, (a, b) in enumerate(zip(left, right, strict=True))
            ]
            tables.append(_table([name, "#expected", "#got"], rows))
    return "".join(tables)


def _elements(text: str) -> list[str]:
    return re.findall(r"[^\[\],\s]+", text)


def _pair(number: int, wanted: str, got: str, outside: bool) -> str:
    kind = "number bad" if outside else "number"
    return (
        f'<tr><td>{number}</td><td class="number">{escape(wanted)}</td>'
        f'<td class="{kind}">{escape(got)}</td></tr>'
    )


def _coverage(covered: Mapping[str, Any], catalog: Catalog) -> str:
    uses = covered["uses"]
    rows = []
    for family, names in sorted(catalog.families().items()):
        used = [name for name in names if uses.get(name)]
        left = ", ".join(sorted(set(names) - set(used)))
        rows.append(
            f"<tr><td>{escape(family)}</td><td class=number>{len(used)} of {len(names)}</td>"
            f'<td><meter max="{len(names)}" value="{len(used)}"></meter></td>'
            f"<td class=number>{sum(uses.get(n, 0) for n in names):,}</td>"
            f"<td class=soft>{escape(left)}</td></tr>"
        )
    return _table(["family", "#operators", "", "#uses", "not used"], rows)
