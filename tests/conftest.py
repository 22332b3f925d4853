"""What every test shares: one BLAS thread, and the same examples in every run."""

import os

# Before NumPy is first imported: the libraries read these once. One thread, because a sum's order
# (so its last bit) depends on their number, and because the tests themselves run in parallel.
for _variable in (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
):
    os.environ[_variable] = "1"
# Where a processor has no AVX-512 TensorFlow has it off, and other kernels, with other defects.
os.environ["TF_ENABLE_ONEDNN_OPTS"] = "1"

import gc  # noqa: E402
from collections.abc import Iterator  # noqa: E402

import pytest  # noqa: E402
from hypothesis import HealthCheck, settings  # noqa: E402

from irlang.analysis.confirm import Frameworks  # noqa: E402
from irlang.garbage import keep  # noqa: E402
from irlang.lower import template  # noqa: E402

# Tests ask a dozen frameworks and modes in turn: what has imported one stays for the next test.
template._IDLE = 16

# Time is no criterion: a kernel takes as long to compile as a thousand examples to run. Examples
# are the same in every run: what fifty do not find, nobody finds by running them again.
settings.register_profile(
    "repeatable",
    max_examples=50,
    derandomize=True,
    deadline=None,
    database=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
# `pytest --hypothesis-profile=search` looks for new counter-examples instead.
settings.register_profile(
    "search",
    parent=settings.get_profile("repeatable"),
    derandomize=False,
    max_examples=2000,
)
settings.load_profile("repeatable")


def pytest_collection_finish() -> None:
    """Lets the collector of garbage leave alone what modules hold: looking through that again and
    again took a fourteenth of the time of tests of ranges.
    """
    gc.collect()
    keep()


@pytest.fixture(scope="module")
def frameworks() -> Iterator[Frameworks]:
    """ONNX Runtime, which shows what an analysis has found."""
    with Frameworks(("onnxruntime",)) as made:
        yield made
