"""Estimators of several packages at equal public facts and equal (ε, δ): a table.

    python benchmarks/peers/run.py [--quick] [--epsilon 1] [--runs 15] [--audits 4000]
                                   [--patience 10] [--solvers NAME ...] [--data NAME ...]
                                   [--environments FOLDER] [--store] [--offset 0]

The files are in benchopt's form (``benchopt run benchmarks/peers``); this script needs none of it.
Each solver with requirements of its own gets an environment in FOLDER, by default a temporary one
that is deleted at the end; the folder requirements states them. A package that can't be installed
is named and left out.

Before a solver is listed its ε is audited: many fits on two neighbouring data sets of a tiny
problem, a linear test chosen on half of them, and Clopper and Pearson's bounds of its errors on the
other half. A solver whose bound on ε lies above its claim is not listed. The same fits at eight
times ε say what the test can see. It is made of as many fits as asked for, or as --patience seconds
for each data set allow. --offset moves the target and its bounds of the audited regressions, which
changes nothing that a claim is about; then nothing but these is measured.

--store writes what is printed to results.csv, in the place of these solvers' earlier rows.
"""

import argparse
import csv
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

import numpy as np
from benchmark_utils import margins
from scipy.stats import beta
from worker import HERE, load

CONFIDENCE, DELTA = 0.95, 1e-6
FEWEST = 20  # fits that a test is made of
EASIER = 8.0  # times ε, where a test that sees anything sees something
CORNERS = np.array([[-1.0, -1.0], [0.0, 0.0], [1.0, 1.0]])  # and the middle, of an audit's records
STORED = HERE / "results.csv"
COLUMNS = ("table", "solver", "measure", "value")


# ---- environments ------------------------------------------------------------------------------


def interpreter(environment, folder):
    """Python of an environment, made when it is asked for; None if that fails."""
    if environment is None:
        return sys.executable
    python = folder / environment / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", folder / environment], check=True)
        required = HERE / "requirements" / f"{environment}.txt"
        command = [python, "-m", "pip", "install", "--quiet", "-r", required]
        if subprocess.run(command, check=False).returncode:
            return None
    return str(python)


def asked(python, solver, params, objective, n_fits, other=None, patience=1e9):
    """The worker's finds for one solver and one objective."""
    with tempfile.TemporaryDirectory() as folder:
        task = Path(folder, "task.npz")
        X, y = objective["X"], objective["y"]
        pair = {} if other is None else {"other_X": other[0], "other_y": other[1]}
        lo, hi = objective["feature_bounds"]
        target = objective["target_bounds"]
        np.savez(
            task, X=X, y=y, lo=lo, hi=hi, target_bounds=() if target is None else target,
            epsilon=objective["epsilon"], delta=objective["delta"], params=json.dumps(params),
            n_fits=n_fits, patience=patience, **pair,
        )  # fmt: skip
        command = [python, str(HERE / "worker.py"), solver, str(task)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        return {"skipped": (done.stderr.strip().splitlines() or ["failed"])[-1]}
    return json.loads(done.stdout.splitlines()[-1])


# ---- the audit -----------------------------------------------------------------------------------


def neighbouring(neighbors, n, classify):
    """Two data sets of two features in [-1, 1]: records in the middle, and one in a corner."""
    rng = np.random.default_rng(0)
    X, y = rng.uniform(-0.3, 0.3, (n, 2)), rng.uniform(-0.3, 0.3, n)
    y = np.arange(n) % 2.0 if classify else y
    odd_X, odd_y = np.vstack([X[:-1], [1.0, 1.0]]), np.append(y[:-1], 1.0)
    if neighbors == "replace_one":
        return (np.vstack([X[:-1], [-1.0, -1.0]]), odd_y), (odd_X, odd_y)
    return (X[:-1], y[:-1]), (odd_X, odd_y)


def numbers(fit):
    """Coefficients of a fit, or its margins where it has none: all that the test is told."""
    if "coef" in fit:
        return [*fit["coef"], fit["intercept"]]
    return margins(CORNERS, **fit)


def bound_on_epsilon(fits, others, delta):
    """A lower bound on ε that holds with the confidence, whatever the test is."""
    n = min(len(fits), len(others))
    half = n // 2  # the first half chooses units, direction and cut; the other one is tested
    here, there = (np.array([numbers(fit) for fit in many[:n]]) for many in (fits, others))
    known = np.sort(np.vstack([here[:half], there[:half]]), axis=0)
    here, there = (
        np.column_stack([np.searchsorted(k, c) for k, c in zip(known.T, many.T, strict=True)])
        for many in (here, there)
    )
    means = here[:half].mean(axis=0), there[:half].mean(axis=0)
    spread = np.cov(np.vstack([here[:half] - means[0], there[:half] - means[1]]).T)
    direction = np.linalg.lstsq(spread, means[1] - means[0])[0]
    here, there = here @ direction, there @ direction
    cuts = np.quantile(np.concatenate([here[:half], there[:half]]), np.linspace(0.002, 0.998, 499))
    tests = [(sign, cut) for sign in (1, -1) for cut in cuts]
    best = max(tests, key=lambda test: epsilon_of(here[:half], there[:half], *test, delta))
    return max(0.0, epsilon_of(here[half:], there[half:], *best, delta))


def epsilon_of(here, there, sign, cut, delta):
    """log of (power - δ) / false alarms, both at the unfavourable end of their intervals."""
    alarms, hits = (int((sign * many > sign * cut).sum()) for many in (here, there))
    if sign < 0:  # few of the first data set are below the cut, or many of them
        alarms, hits, here, there = hits, alarms, there, here
    level = (1 - CONFIDENCE) / 2
    most = beta.ppf(1 - level, alarms + 1, len(here) - alarms) if alarms < len(here) else 1.0
    least = beta.ppf(level, hits, len(there) - hits + 1) if hits else 0.0
    return np.log(max(least - delta, 1e-12) / most)


def audit(python, solver, model, classify, options):
    """Bounds on ε at the claim and at the easier one, and how many fits; or why there are none."""
    found, shift = [], 0.0 if classify else options.offset
    for claim in (options.epsilon, EASIER * options.epsilon):
        for n in (60, 1000):  # fewer say more, but a median of models needs many
            first, (other_X, other_y) = neighbouring(model.neighbors, n, classify)
            other = other_X, other_y + shift
            objective = {
                "X": first[0], "y": first[1] + shift, "epsilon": claim, "delta": DELTA,
                "feature_bounds": (np.array([-1.0, -1.0]), np.array([1.0, 1.0])),
                "target_bounds": None if classify else (shift - 1.0, shift + 1.0),
            }  # fmt: skip
            answer = asked(
                python, solver, vars(model), objective, options.audits, other, options.patience
            )
            if not answer["skipped"]:
                break
        if answer["skipped"]:
            return answer["skipped"]
        if min(len(answer["fits"]), len(answer["others"])) < FEWEST:
            return f"fewer than {FEWEST} fits in {options.patience:g} s"
        found.append(bound_on_epsilon(answer["fits"], answer["others"], DELTA))
    n_fits = min(len(answer["fits"]), len(answer["others"]))
    return {"at claim": found[0], "at easier": found[1], "fits": n_fits}


def audit_line(cells):
    return f"{cells['at claim']:13.2f} {cells['at easier']:9.2f} {cells['fits']:6.0f}"


def audited(options, folder, kept):
    """The solvers whose claim no test contradicts, by task; prints and keeps what was found."""
    print(
        f"audit at ε = {options.epsilon:g}, δ = {DELTA:g}, on neighbouring data sets of 60 records"
    )
    head = f"{'ε is at least':>13} {f'at {EASIER:g} ε':>9} {'fits':>6}"
    print(f"{'':36} {'task':14} {'neighbours':12} {head}")
    for solver, model in solvers(options.solvers):
        python = interpreter(model.environment, folder)
        if python is None:
            print(f"{title(model):36} its requirements can't be installed: left out")
            continue
        for classify in (False,) if options.offset else (False, True):
            found = audit(python, solver, model, classify, options)
            task = "classification" if classify else "regression"
            if isinstance(found, str):
                print(f"{title(model):36} {task:14} left out: {found}", flush=True)
                continue
            offset = f", offset {options.offset:g}" if options.offset else ""
            keep(kept, f"audit, {task}{offset}", model, found)
            verdict = "" if found["at claim"] <= options.epsilon else "  above its claim: left out"
            print(
                f"{title(model):36} {task:14} {model.neighbors:12} {audit_line(found)}{verdict}",
                flush=True,
            )
            if not verdict:
                yield classify, python, solver, model


# ---- the table -----------------------------------------------------------------------------------


def datasets(quick, names):
    bundled = load("datasets/bundled.py", "Dataset")
    simulated = load("datasets/simulated.py", "Dataset")
    for data in [bundled(data="diabetes")] if quick else [*bundled.all(), simulated()]:
        name = getattr(data, "data", "simulated")
        if names and name not in names:
            continue
        try:
            yield name, data.get_data()
        except FileNotFoundError as error:
            print(f"{error}: left out")


def solvers(names):
    for path in sorted((HERE / "solvers").glob("*.py")):
        if names and path.stem not in names:
            continue
        for model in load(f"solvers/{path.name}", "Solver").all():
            yield path.stem, model


def stored():
    """Values by table, solver and measure."""
    if not STORED.is_file():
        return {}
    with STORED.open(newline="", encoding="utf-8") as lines:
        return {tuple(row[:3]): float(row[3]) for row in list(csv.reader(lines))[1:]}


def store(kept):
    """Replace the rows of the same solvers on the same tables."""
    renewed = {key[:2] for key in kept}
    rows = {key: value for key, value in stored().items() if key[:2] not in renewed} | kept
    with STORED.open("w", newline="", encoding="utf-8") as lines:
        writer = csv.writer(lines, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows([*key, f"{rows[key]:.4g}"] for key in sorted(rows))


def keep(kept, table, model, values):
    kept.update({(table, title(model), name): value for name, value in values.items()})


def row(objective, answer):
    """Medians over the fits of one solver, by measure."""
    found = [
        objective.evaluate_result(**{name: np.array(value) for name, value in fit.items()})
        for fit in answer["fits"]
    ]
    cells = {name: median(f[name] for f in found) for name in ("error", "excess_risk")}
    covered = [f["coverage"] for f in found if "coverage" in f]
    if covered:
        cells["coverage"] = np.mean(covered)
    return cells | {"seconds": median(answer["seconds"]), "megabytes": answer["megabytes"]}


def line(cells):
    coverage = f"{cells['coverage']:.2f}" if "coverage" in cells else "-"
    return (
        f"{cells['error']:9.4g} {cells['excess_risk']:11.4g} {coverage:>8} "
        f"{cells['seconds']:9.4f} {cells['megabytes']:6.0f}"
    )


def title(model):
    words = ["inference"] * getattr(model, "inference", False)
    words += ["add_remove"] * (vars(model).get("neighbors") == "add_remove")
    return ", ".join([model.name, *words])


def main(options):
    folder = Path(options.environments)
    folder.mkdir(exist_ok=True, parents=True)
    kept = {}
    listed = list(audited(options, folder, kept))
    for name, data in () if options.offset else datasets(options.quick, options.data):
        objective = load("objective.py", "Objective")(epsilon=options.epsilon, delta=DELTA)
        objective.set_data(**data)
        n, p = data["X"].shape
        print(f"\n{name}: n = {n:,}, p = {p}, ε = {options.epsilon:g}; {options.runs} fits")
        print(f"{'':36} {'error':>9} {'excess risk':>11} {'coverage':>8} {'CPU s':>9} {'MB':>6}")
        print(f"{'no privacy':36} {objective.plain[0]:9.4g} {0:11.4g}")
        plain = {"error": objective.plain[0], "excess_risk": 0.0}
        kept.update({(name, "no privacy", measure): value for measure, value in plain.items()})
        for classify, python, solver, model in listed:
            if classify != (data["target_bounds"] is None):
                continue
            answer = asked(python, solver, vars(model), objective.get_objective(), options.runs)
            if answer["skipped"]:
                print(f"{title(model):36} {answer['skipped']}", flush=True)
                continue
            cells = row(objective, answer)
            keep(kept, name, model, cells)
            print(f"{title(model):36} {line(cells)}", flush=True)
    if options.store:
        store(kept)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="one data set")
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--runs", type=int, default=15)
    parser.add_argument("--audits", type=int, default=4000)
    parser.add_argument(
        "--patience", type=float, default=10.0, help="seconds of an audit's data set"
    )
    parser.add_argument("--offset", type=float, default=0.0, help="of an audit's target")
    parser.add_argument("--solvers", nargs="*", help="names of files in solvers/")
    parser.add_argument("--data", nargs="*", help="names of data sets")
    parser.add_argument("--environments", help="folder of environments that are kept")
    parser.add_argument("--store", action="store_true", help="write the results to results.csv")
    options = parser.parse_args()
    if options.environments:
        main(options)
    else:
        with tempfile.TemporaryDirectory() as folder:
            options.environments = folder
            main(options)
