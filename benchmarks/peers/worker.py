"""Runs one solver in its own environment: fits, or pairs of fits on neighbouring data sets.

``python worker.py SOLVER TASK.npz``: the task holds the objective's arrays, parameters of the
solver as JSON, and how many fits; what was found is printed as JSON on the last line.
"""

import importlib.util
import json
import os
import resource
import sys
import time
import warnings
from pathlib import Path

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"

import numpy as np  # noqa: E402

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))


def load(path, name):
    """The class of a file in benchopt's form."""
    from benchmark_utils.without_benchopt import stand_in

    stand_in()
    spec = importlib.util.spec_from_file_location(f"of_peers_{Path(path).stem}", HERE / path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, name)


def objective_of(arrays, prefix=""):
    """Arguments of ``set_objective``, from arrays of a file."""
    target = arrays["target_bounds"]
    return {
        "X": arrays[f"{prefix}X"],
        "y": arrays[f"{prefix}y"],
        "feature_bounds": (arrays["lo"], arrays["hi"]),
        "target_bounds": tuple(map(float, target)) if len(target) else None,
        "epsilon": float(arrays["epsilon"]),
        "delta": float(arrays["delta"]),
    }


def most_memory():
    """The largest resident size of this process in MB."""
    try:
        lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    (line,) = [line for line in lines if line.startswith("VmHWM")]
    return int(line.split()[1]) / 1024  # getrusage's starts with that of whoever started it


def plain(result):
    return {name: np.asarray(value).tolist() for name, value in result.items()}


def main(solver, task):
    with np.load(task, allow_pickle=False) as arrays:
        arrays = dict(arrays)
    cls = load(f"solvers/{solver}.py", "Solver")
    params = json.loads(str(arrays["params"]))
    found = {"skipped": None, "fits": [], "others": [], "seconds": []}
    for name, prefix in (("fits", ""), ("others", "other_")):
        if f"{prefix}X" not in arrays:
            continue
        objective = objective_of(arrays, prefix)
        model = cls(**params)
        skipped, reason = model.skip(**objective)
        if skipped:
            found["skipped"] = reason
            break
        model.set_objective(**objective)
        if not prefix:
            model.run(1)  # imports, compilation
        begin = time.perf_counter()
        for _ in range(int(arrays["n_fits"])):
            if time.perf_counter() - begin > float(arrays["patience"]):
                break
            start = time.process_time()
            model.run(1)
            if not prefix:
                found["seconds"].append(time.process_time() - start)
            found[name].append(plain(model.get_result()))
    found["megabytes"] = most_memory()
    print(json.dumps(found))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(*sys.argv[1:])
