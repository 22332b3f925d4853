"""What an importer has kept of a model's own names in the text that it wrote.

A name that the language does not have is in a remark beside its statement (`# cost/Log:0`), and in
the text before the model for inputs and results (`x_0 is x:0`). A remark counts only where it
becomes the name in the text: then it can be nothing else. Where the call had a name of its own,
that follows (`# cost/Log:0 of cost/Log`, or `# of cost/Log`), and is what the call is known by.
"""

from __future__ import annotations

import re

from irlang import ast

_OF = re.compile(r"(?:(?P<value>\S+) )?of (?P<call>.+)")  # a remark with the name of a call
_PAIR = re.compile(r"(\w+)\s+is\s+([^;\s]+?)(?=;|\.?\s|\.?$)")


def remembered(model: ast.Model) -> dict[str, str]:
    """The original names of a model's values, by their names in the text."""
    found = {
        name: original for name, original in _PAIR.findall(model.doc) if _becomes(original, name)
    }
    for part in ast.walk(model):
        if not isinstance(part, ast.Assign | ast.Param):
            continue
        names = part.targets if isinstance(part, ast.Assign) else (part.name,)
        for remark in (part.trailing, *part.comments):
            *olds, last = remark.removeprefix("#").strip().split(", ")
            told = _OF.fullmatch(last)
            for original in (*olds, told["value"] if told else last):
                found.update((name, original) for name in names if _becomes(original, name))
            if told and isinstance(part, ast.Assign):
                own = told["value"] is None or any(_becomes(told["value"], n) for n in names)
                found.update(dict.fromkeys(names, told["call"]) if own else {})
    return found


def _becomes(original: str | None, name: str) -> bool:
    """Whether a name outside is written like this in the language."""
    if original is None:
        return False
    plain = re.sub(r"\W+", "_", original, flags=re.ASCII).strip("_")
    return (
        original != name and plain != "" and re.fullmatch(rf"(v_)?{plain}(_\d*)?", name) is not None
    )
