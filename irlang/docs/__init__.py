"""Documentation, derived from definitions: `python -m irlang.docs docs/operators.md` writes it.

`facts` has all that is known about an operator as data; `markdown`, `page` and the command line
print it.
"""
