"""Mathematics of definitions: a small form that has three printers (Unicode, LaTeX, MathML)."""
