"""jax_privacy: clipped gradients, Gaussian noise and calibration by its parts."""

import secrets

import numpy as np
from benchmark_utils import to_units
from benchmark_utils.descent import RATE, STEP, STEPS
from benchopt import BaseSolver


class Solver(BaseSolver):
    """The same batches, steps and clip as DP-SGD, with jax_privacy's accountant."""

    name = "jax_privacy"
    requirements = ["pip::jax-privacy==2.*"]
    environment = "jax_privacy"
    neighbors = "add_remove"

    def set_objective(self, X, y, feature_bounds, target_bounds, epsilon, delta):
        import jax
        import jax.numpy as jnp
        from jax_privacy import clipping, noise_addition
        from jax_privacy.accounting import accountants, analysis, calibrate

        X, y, self.back = to_units(X, y, feature_bounds, target_bounds)
        X, classify = np.column_stack([X, np.ones(len(X))]), target_bounds is None
        config = accountants.PldAccountantConfig()
        multiplier = calibrate.calibrate_noise_multiplier(
            target_epsilon=epsilon,
            target_delta=delta,
            accountant=analysis.DpsgdTrainingAccountant(dp_accountant_config=config),
            batch_sizes=int(RATE * len(X)),
            num_updates=STEPS,
            num_samples=len(X),
        )

        def loss(coef, row, target, counts):
            margin = row @ coef
            if classify:
                return counts * jnp.logaddexp(0.0, -target * margin)
            return counts * (margin - target) ** 2 / 2

        gradient = clipping.clipped_grad(
            loss, l2_clip_norm=1.0, batch_argnums=(1, 2, 3), keep_batch_dim=False
        )
        self.noise = noise_addition.gaussian_privatizer(stddev=multiplier, prng_key=0)

        @jax.jit
        def step(coef, state, X, y, batch):  # records outside of the batch weigh nothing
            noisy, state = self.noise.update(gradient(coef, X, y, batch), state)
            return coef - STEP * noisy / (RATE * len(X)), state

        self.X, self.y, self.step = jnp.asarray(X), jnp.asarray(y), step

    def run(self, _):
        import jax
        import jax.numpy as jnp

        rng, (n, p) = np.random.default_rng(), self.X.shape
        coef = jnp.zeros(p)
        _, inner = self.noise.init(coef)
        state = jax.random.key(secrets.randbits(32)), inner  # a key of its own for every fit
        for _ in range(STEPS):
            batch = jnp.asarray(rng.random(n) < RATE, dtype=jnp.float32)
            coef, state = self.step(coef, state, self.X, self.y, batch)
        self.coef = np.asarray(coef, dtype=float)

    def get_result(self):
        coef, intercept = self.back(self.coef[:-1], self.coef[-1])
        return {"coef": coef, "intercept": intercept}
