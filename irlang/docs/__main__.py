"""`python -m irlang.docs [docs/operators.md]`: writes the index, and the pages of families."""

from __future__ import annotations

import sys
from pathlib import Path

from irlang.catalog import builtin
from irlang.docs.markdown import write

if __name__ == "__main__":
    index = Path(sys.argv[1] if len(sys.argv) > 1 else "docs/operators.md")
    for path in write(builtin(), index):
        print(path)  # what there is to commit
