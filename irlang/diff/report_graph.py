"""A program as a drawing: calls as boxes, types on the lines between them, the culprit marked."""

from __future__ import annotations

from collections.abc import Collection
from html import escape

from irlang.graph import Graph

_WIDE, _HIGH = 190, 84  # of a place in the grid
_BOX = 34
_LETTER = 7.6  # width of a letter, about
_MOST = 40  # calls that are drawn


def svg(graph: Graph, culprits: Collection[str]) -> str:
    """The drawing; empty for a program that is too large for one. culprits: operators' names."""
    if len(graph.nodes) > _MOST:
        return ""
    given = [n for n in (*graph.inputs, *graph.params) if n not in _literals(graph)]
    depth = dict.fromkeys(given, 0)
    labels = {name: name for name in given}
    maker: dict[str, str] = {}
    for node in graph.nodes:
        key = f"call {node.outputs[0]}"
        depth[key] = 1 + max((depth[maker.get(v, v)] for v in node.operands()
                              if maker.get(v, v) in depth), default=0)  # fmt: skip
        labels[key] = node.op.name
        maker.update(dict.fromkeys(node.outputs, key))
    for name, value in graph.outputs.items():
        key = f"result {name}"
        depth[key] = depth[maker.get(value, value)] + 1
        labels[key] = name
    places, width = _places(depth)
    lines = []
    for node in graph.nodes:
        key = f"call {node.outputs[0]}"
        drawn = [v for v in dict.fromkeys(node.operands()) if maker.get(v, v) in places]
        lines += [_line(places[maker.get(v, v)], places[key], str(graph.values[v])) for v in drawn]
    for name, value in graph.outputs.items():
        lines.append(_line(places[maker.get(value, value)], places[f"result {name}"],
                           str(graph.values[value])))  # fmt: skip
    boxes = [_box(places[key], labels[key], _kind(key, labels[key], culprits)) for key in places]
    high = (max(depth.values(), default=0) + 1) * _HIGH
    return (
        f'<svg viewBox="0 0 {width} {high}" width="{width}" role="img" '
        f'aria-label="the program">{"".join(lines)}{"".join(boxes)}</svg>'
    )


def _literals(graph: Graph) -> set[str]:
    return {name for name, param in graph.params.items() if param.literal}


def _places(depth: dict[str, int]) -> tuple[dict[str, tuple[float, float]], int]:
    """The middle of every box, rows centred."""
    rows: dict[int, list[str]] = {}
    for key, at in depth.items():
        rows.setdefault(at, []).append(key)
    width = max((len(row) for row in rows.values()), default=1) * _WIDE
    places = {}
    for at, row in rows.items():
        start = (width - len(row) * _WIDE) / 2
        for number, key in enumerate(row):
            places[key] = (start + (number + 0.5) * _WIDE, (at + 0.5) * _HIGH)
    return places, width


def _kind(key: str, label: str, culprits: Collection[str]) -> str:
    if not key.startswith("call "):
        return "given"
    return "culprit" if label in culprits else "call"


def _line(start: tuple[float, float], end: tuple[float, float], text: str) -> str:
    (x0, y0), (x1, y1) = start, end
    top, bottom = y0 + _BOX / 2, y1 - _BOX / 2
    x, y = (x0 + x1) / 2, (top + bottom) / 2 + 4
    return (
        f'<path class="edge" d="M{x0:g} {top:g}L{x1:g} {bottom:g}"/>'
        f'<text class="type" x="{x:g}" y="{y:g}">{escape(text)}</text>'
    )


def _box(place: tuple[float, float], text: str, kind: str) -> str:
    x, y = place
    shown = text if len(text) <= 20 else f"{text[:19]}…"
    wide = max(40.0, len(shown) * _LETTER + 24)
    rounding = 17 if kind == "given" else 5
    return (
        f'<rect class="{kind}" x="{x - wide / 2:g}" y="{y - _BOX / 2:g}" width="{wide:g}" '
        f'height="{_BOX}" rx="{rounding}"/><text x="{x:g}" y="{y + 5:g}">{escape(shown)}</text>'
    )
