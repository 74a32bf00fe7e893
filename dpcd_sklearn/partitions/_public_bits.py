"""Bits that a process makes of a public example: those that answer together must have the same."""

from functools import cache
from hashlib import sha256

import numpy as np
from scipy.sparse import csr_array

from ..losses import LOSSES
from ..privacy.sums._person_place import PersonPlace
from ..privacy.sums._place import LocalPlace
from ..privacy.sums._remote_place import Opening, Part
from ..privacy.sums._remote_sums import Asked


@cache
def public_bits():
    """A digest of losses' derivatives, and of sums after a move, at public numbers.

    Returns
    -------
    str
    """
    n, p = 97, 11
    grid = np.arange(n * p, dtype=np.float64)
    X = ((grid * 0.618033988749895) % 2.0 - 1.0).reshape(n, p)  # of no sort, on every machine
    margins, y = 40.0 * X, np.arange(n) % 3.0
    digest = sha256()
    for name in sorted(LOSSES):
        loss = LOSSES[name]()
        at = margins[:, :3] if loss.multi_output else margins[:, 0]
        digest.update(np.ascontiguousarray(loss.gradient(at, y)).tobytes())
    smoothness, steps = np.linspace(0.5, 2.0, p + 1), np.linspace(-1.0, 1.0, p + 1)
    opening = Opening("moving", LOSSES["logistic"](), smoothness, True)
    asked = Asked(p + 1, True, 0.7, 2.0**20)
    order = np.argsort(y, kind="stable")
    for layout in (np.float64, np.float32, csr_array):
        place = LocalPlace(layout(X), y)
        moves = [("move", np.arange(p + 1), steps), ("move", np.array([3]), np.array([0.1]))]
        digest.update(Part(place).answer(opening, moves, ("sums", asked)).tobytes())
        stated = opening._replace(kind="stated")
        at = ("sums", asked._replace(coef=steps))
        persons = PersonPlace(layout(X), y, None, order, np.arange(0, n, 8), None)
        for one in (place, persons):
            digest.update(Part(one).answer(stated, [], at).tobytes())
    return digest.hexdigest()
