"""The collector of garbage, where much is made that stays."""

from __future__ import annotations

import gc


def keep() -> None:
    """Lets the collector leave alone what is there by now, and look seldom at what comes after."""
    gc.freeze()  # definitions, models, modules: nothing is found by looking through them
    gc.set_threshold(20_000, 20, 50)  # what is remembered stays as well
