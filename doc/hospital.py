"""The table of this guide: 6,000 made-up stays of 3,129 patients in a hospital."""

import numpy as np
import pandas as pd

rng = np.random.default_rng(0)
n = 6000
stays = pd.DataFrame({
    "patient_id": rng.integers(10_000, 14_000, n), "age": rng.integers(18, 95, n),
    "ward": rng.choice(["ICU", "medicine", "surgery"], n),
    "pressure": rng.normal(135.0, 20.0, n).round(), "earlier_stays": rng.poisson(1.0, n),
})
risk = 0.08 * stays["age"] + 2 * stays["earlier_stays"] + 0.05 * stays["pressure"] - 14
readmitted = (risk + rng.logistic(size=n) > 0).astype(int).to_numpy()
stays.loc[rng.random(n) < 0.1, "pressure"] = np.nan  # not measured
days = (6 + risk / 2 + 3 * (stays["ward"] == "ICU") + rng.normal(size=n)).clip(0, 30).to_numpy()
NUMBERS = ["age", "earlier_stays"]
BOUNDS = {"age": (0, 110), "earlier_stays": (0, 20)}  # public: nobody looked at the records
