"""Engine of full-batch DP-SkGD of which nothing but the last iterate is released."""

from ..privacy.accounting._calibration import hidden_state_fit_event
from ..privacy.mechanisms._hidden_state import Descent, contraction, release_last_iterate
from ..solvers._problem import Solution
from ._engines_coordinates import SkGDEngine
from ._geometry import isotropic
from ._recipes import hidden_state_recipe


class HiddenStateEngine(SkGDEngine):
    """What its proof assumes (proofs/release_last_iterate.md) is checked here."""

    losses = {"squared", "huber"}
    penalties = {"l2"}
    averagings = {"auto", "last"}

    def needs(self, model, loss):
        if model.fit_intercept and not model.penalize_intercept:
            return "fit_intercept=False or penalize_intercept=True: the ridge is on everything"
        if model.alpha <= 0:
            return "alpha > 0: without a ridge nothing is forgotten"
        if model.sampling not in ("auto", "full"):
            return 'sampling="full"'
        if model.momentum not in ("auto", 0):
            return "momentum=0: a velocity would carry earlier iterates out"
        if model.averaging not in self.averagings:
            return 'averaging="last": an average shows earlier iterates'
        if model.coef_path:
            return "coef_path=False: a path shows earlier iterates"
        return super().needs(model, loss)

    def geometry(self, model, geometry, loss):
        return isotropic(geometry, loss.curvature, model.fit_intercept, model.row_norm_bound)

    def curvature(self, model, geometry, sampling):
        return 1.0

    def recipe(self, model, facts, geometry, sampling):
        l2 = max(model._strength(facts.n_normalizer), 1e-300)
        return hidden_state_recipe(facts.signal, 1 + geometry.smoothness[0] / l2)

    def event(self, model, delta, problem):
        step, l2, smoothness = _descent(problem)
        c = contraction(step, l2, smoothness)
        if c >= 1:
            raise ValueError(
                f"step_size={model.step_size!r} with alpha={model.alpha!r} does not contract: "
                f'accounting="hidden_state" needs alpha > 0 and a step below '
                f"{2 / (1 + l2 / smoothness):.6g}"
            )
        return hidden_state_fit_event(model.epsilon, delta, problem.n_updates, c, model.neighboring)

    def clip(self, residual_clip, geometry):
        # for all coordinates together, whose M is that of the longest row
        return residual_clip * float(geometry.smoothness[0]) ** 0.5

    def check(self, plan, n_samples, fit_intercept):
        step, l2, smoothness = _descent(plan.problem)
        Descent(
            plan.event,
            n_samples=n_samples,
            n_coordinates=plan.problem.n_coordinates,
            curvature=plan.loss.curvature,
            squared_norm=smoothness / plan.loss.curvature,
            clip=plan.clip,
            step=step,
            l2=l2,
            n_normalizer=plan.n_normalizer,
        )

    def run(self, receipt, records, plan, fit_intercept, key, generator):
        step, l2, _ = _descent(plan.problem)
        coef = release_last_iterate(
            receipt,
            self.place(records, plan),
            loss=plan.loss,
            row_norm=plan.geometry.row_norm,
            clip=plan.clip,
            step=step,
            l2=l2,
            n_normalizer=plan.n_normalizer,
            fit_intercept=fit_intercept,
            key=key,
        )
        return Solution(coef, plan.problem.n_updates)


def _descent(problem):
    """Step, ridge and smoothness of the data's part, for the isotropic descent."""
    smoothness = float(problem.smoothness[0])
    return problem.step_size / smoothness, problem.penalty.l2, smoothness
