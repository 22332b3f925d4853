"""Targets that a test wants, of which a machine may have none."""

from __future__ import annotations

import pytest

from irlang.lower import added
from irlang.lower.target import Description, describe

# Old releases that somebody may have added; a machine that has just been set up has none of them.
_ONNXRUNTIMES = frozenset({"ort-1.15", "ort-1.17", "ort-1.20", "ort-1.23"})
_RELEASES = frozenset({"keras-theano", "mxnet-1.6", "ov", "tf-2.4", "tf-2.12", *_ONNXRUNTIMES})


def usable(target: str) -> Description:
    """The target; where it is not there the test is skipped, with the reason."""
    release = target.partition(":")[0]
    if release in _RELEASES and release not in added.names():
        pytest.skip(f"nobody has added {release} (docs/targets.md says how)")
    found = describe(target)
    if not found.installed:
        pytest.skip(found.reason)
    return found
