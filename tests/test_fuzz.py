"""Random calls raise ValueError or TypeError, or work: no other exception, no crash, no hang.

Seeds are in every message: ``python tests/fuzzing.py SEED SEED+1`` repeats a case.
"""

import subprocess
import sys
from pathlib import Path

import pytest
from fuzzing import fault_of

CHUNK = 1_000


@pytest.mark.parametrize("first", range(0, 400, 50))
def test_a_few_hundred_random_calls_end_as_documented(first):
    faults = [fault for seed in range(first, first + 50) if (fault := fault_of(seed))]
    assert not faults, "\n\n".join(faults)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1_000, 21_000, CHUNK))
def test_twenty_thousand_random_calls_end_as_documented(first):
    # in a process of its own: a crash, too, names its seed
    script = Path(__file__).with_name("fuzzing.py")
    done = subprocess.run(
        [sys.executable, str(script), str(first), str(first + CHUNK)],
        capture_output=True,
        text=True,
        timeout=1_200,
    )
    assert done.returncode == 0, f"{done.stdout[-20_000:]}\n{done.stderr[-5_000:]}"
