"""The seeds that ``global_random_seed`` takes, as DPCD_TEST_SEEDS states them."""

import os


def _seeds(text):
    first, _, last = text.partition("-")
    return range(int(first), int(last or first) + 1)


def pytest_generate_tests(metafunc):
    if "global_random_seed" in metafunc.fixturenames:
        seeds = _seeds(os.environ.get("DPCD_TEST_SEEDS", "0"))
        metafunc.parametrize("global_random_seed", seeds, ids=lambda seed: f"seed{seed}")
