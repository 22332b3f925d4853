"""Where NaN and infinity can arise in a model: verdicts, witnesses, guards.

`irlang.interp.range` proves what cannot happen. What it cannot rule out is looked for here, by
running the model, and what is found is confirmed by an installed framework.
"""
