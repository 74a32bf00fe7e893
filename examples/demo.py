"""A first private model, in a minute: raw columns, one call, its price, a report.

``make demo`` runs this from a bare checkout; ``python examples/demo.py`` once the package is
installed. The passengers of the Titanic come with scikit-learn: words, numbers in their own units,
and gaps. The bounds below are public knowledge in round numbers, none is read off the records.
"""

import argparse
import csv
import gzip
import logging
import warnings
from importlib.resources import files
from pathlib import Path
from tempfile import mkdtemp

import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from dpcd_sklearn import BudgetExceededError, PrivacyAccountant, PrivacyLeakWarning
from dpcd_sklearn.compose import private_table_model
from dpcd_sklearn.inspection import PrivacyReport

BOUNDS = {"pclass": (1, 3), "age": (0, 90), "sibsp": (0, 10), "parch": (0, 10), "fare": (0, 520)}
CATEGORIES = {"sex": ["female", "male"], "embarked": ["C", "Q", "S"]}  # the ship's three ports


def passengers():
    """Return the 1,309 passengers as a data frame, and who survived."""
    folder = files("sklearn.datasets.tests.data.openml.id_40945")
    packed = (folder / "data-v1-dl-16826755.arff.gz").read_bytes()
    lines = gzip.decompress(packed).decode().splitlines()
    names = [line.split("'")[1] for line in lines if line.startswith("@attribute")]
    rows = [row for row in csv.reader(lines[lines.index("@data") + 1 :]) if row]
    table = pd.DataFrame(rows, columns=names).replace("?", None)
    numbers = [*BOUNDS, "body"]
    table[numbers] = table[numbers].astype(float)
    return table, table.pop("survived").astype(int).to_numpy()


def plain_model():
    """Return what one would write without privacy."""
    return make_pipeline(
        make_column_transformer(
            (make_pipeline(SimpleImputer(), StandardScaler()), list(BOUNDS)),
            (OneHotEncoder(), list(CATEGORIES)),
        ),
        LogisticRegression(),
    )


def told(model, X, y):
    """Return the scores of a model in words."""
    auc = roc_auc_score(y, model.decision_function(X))
    return f"accuracy {model.score(X, y):.2f}, AUC {auc:.2f}"


def main(arguments=None):
    """Tell the story."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--folder", default=None, help="for the ledger and the report")
    folder = Path(parser.parse_args(arguments).folder or mkdtemp(prefix="dpcd-demo-"))
    # Scores have no noise, and say so; these records are public.
    warnings.simplefilter("ignore", PrivacyLeakWarning)
    logging.getLogger("dpcd_sklearn").setLevel(logging.ERROR)  # a new ledger, rightly
    X, y = passengers()
    # By row numbers: a stratified split would depend on every label.
    X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)

    print(f"1. A raw table: {len(X_train)} passengers to learn from, {len(X_test)} to score on.\n")
    print(X_train.head(3)[[*BOUNDS, *CATEGORIES, "name"]].to_string(index=False))

    print("\n2. One call. It refuses what would be wrong, before a record is read:\n")
    try:
        private_table_model(X_train, y_train)
    except ValueError as error:
        print(error)
    print("\n   So it is told, and prints the pipeline that it makes, for you to edit:\n")
    ledger = folder / "passengers.ledger"
    accountant = PrivacyAccountant(epsilon=1.25, delta=1e-6, path=ledger)
    model = private_table_model(
        X_train,
        epsilon=1.0,
        delta=1e-6,
        classes=[0, 1],
        bounds=BOUNDS,
        categories=CATEGORIES,
        drop=["name", "ticket", "cabin", "boat", "body", "home.dest"],
        accountant=accountant,
    ).fit(X_train, y_train)

    print("\n3. What privacy costs: scores on passengers that no model has seen.\n")
    print(f"   private, epsilon=1     {told(model, X_test, y_test)}")
    print(f"   scikit-learn, plain    {told(plain_model().fit(X_train, y_train), X_test, y_test)}")
    print(f"   the larger class       accuracy {max(y_test.mean(), 1 - y_test.mean()):.2f}")

    print("\n4. What was spent, in a ledger that outlives this process:\n")
    print(f"   {accountant.spent()}")
    print(f"   left for one more fit: epsilon={accountant.remaining():.2f}")

    print("\n5. A second fit like it does not fit into the budget, and reads no record:\n")
    try:
        model.fit(X_train, y_train)
    except BudgetExceededError as error:
        print(f"   refused: {str(error).partition(';')[0]}")

    PrivacyReport(model).save(folder / "report.html")
    print(f"\n6. A report for who has to sign:\n\n   {folder / 'report.html'}")
    print(
        "\nNext:\n"
        f"   python -m dpcd_sklearn ledger {ledger}\n"
        f"   python -m dpcd_sklearn ledger {ledger} --fit 0.5\n"
        "   python examples/quick_start/plot_plan.py   # what epsilon your own data need"
    )


if __name__ == "__main__":
    main()
