"""Opacus: a linear layer, trained by its engine."""

import warnings

import numpy as np
from benchmark_utils import to_units
from benchmark_utils.descent import RATE, STEP, STEPS
from benchopt import BaseSolver


class Solver(BaseSolver):
    """The same batches, steps and clip as DP-SGD, with Opacus's accountant."""

    name = "Opacus"
    requirements = ["pip::opacus==1.6.*"]
    environment = "opacus"
    neighbors = "add_remove"

    def set_objective(self, X, y, feature_bounds, target_bounds, epsilon, delta):
        import torch
        from opacus.accountants.utils import get_noise_multiplier

        torch.set_num_threads(1)
        X, y, self.back = to_units(X, y, feature_bounds, target_bounds)
        self.classify = target_bounds is None
        y = (y + 1) / 2 if self.classify else y
        self.data = torch.utils.data.TensorDataset(
            torch.tensor(X, dtype=torch.float32), torch.tensor(y, dtype=torch.float32)
        )
        self.multiplier = get_noise_multiplier(
            target_epsilon=epsilon, target_delta=delta, sample_rate=RATE, steps=STEPS
        )

    def run(self, _):
        import torch
        from opacus import PrivacyEngine

        warnings.simplefilter("ignore")  # of its secure mode, which this is not
        layer = torch.nn.Linear(self.data.tensors[0].shape[1], 1)
        torch.nn.init.zeros_(layer.weight), torch.nn.init.zeros_(layer.bias)
        loader = torch.utils.data.DataLoader(self.data, batch_size=int(RATE * len(self.data)))
        layer, optimizer, loader = PrivacyEngine().make_private(
            module=layer,
            optimizer=torch.optim.SGD(layer.parameters(), lr=STEP),
            data_loader=loader,
            noise_multiplier=self.multiplier,
            max_grad_norm=1.0,
        )
        logistic = torch.nn.BCEWithLogitsLoss()
        done = 0
        while done < STEPS:
            for X, y in loader:
                optimizer.zero_grad()
                margins = layer(X)[:, 0]
                loss = logistic(margins, y) if self.classify else ((margins - y) ** 2).mean() / 2
                loss.backward()
                optimizer.step()
                done += 1
                if done == STEPS:
                    break
        self.coef = layer._module.weight.detach().numpy().ravel().astype(float)
        self.intercept = float(layer._module.bias.detach()[0])

    def get_result(self):
        coef, intercept = self.back(self.coef, self.intercept)
        return {"coef": np.asarray(coef), "intercept": intercept}
