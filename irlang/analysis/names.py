"""What an importer has kept of a model's own names in the text that it wrote.

A name that the language does not have is in a remark beside its statement (`# cost/Log:0`), and in
the text before the model for inputs and results (`x_0 is x:0`). A remark counts only where it
becomes the name in the text: then it can be nothing else.
"""

from __future__ import annotations

import re

from irlang import ast

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
            for original in remark.lstrip("# ").split(", "):
                found.update((name, original) for name in names if _becomes(original, name))
    return found


def _becomes(original: str, name: str) -> bool:
    """Whether a name outside is written like this in the language."""
    plain = re.sub(r"\W+", "_", original, flags=re.ASCII).strip("_")
    return (
        original != name and plain != "" and re.fullmatch(rf"(v_)?{plain}(_\d*)?", name) is not None
    )
