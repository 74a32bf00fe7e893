"""Dask workers as holders of partitions: an actor on each of them, and one message an update.

An actor keeps what its partitions remember (margins) in the memory of its worker. If the worker is
lost, Dask makes the partitions anew from their graph, another actor takes them, and is told the
whole story: its answers are the same integers.
"""

import copy
import time

from distributed import wait

from ..partitions._partition import Partition
from ..partitions._public_bits import public_bits
from ..partitions._records import Holders

# Seconds: between two looks at whether a worker is still there, and for one to come (back).
_GLANCE, _PATIENCE = 1.0, 60.0
_MOST_LOSSES = 16  # of workers in one fit: beyond it the cluster is no place to fit in


class Shelf:
    """The partitions of one worker; it lives there, as an actor.

    Parameters
    ----------
    reader : PrivateLinearModel
    numbers : list of int
    *parts : tuples (X, y, sample_weight)
    """

    def __init__(self, reader, numbers, *parts):
        self._partitions, self._found = {}, {}
        for number, part in zip(numbers, parts, strict=True):
            try:
                partition = Partition(reader, number, *part)
            except Exception as error:  # a value, so that no log of a worker shows a record
                self._found[number] = error
                continue
            self._found[number] = partition.facts
            if partition.facts.n_samples:
                self._partitions[number] = partition

    def look(self):
        """Facts or errors by number, and what the worker makes of a public example."""
        return self._found, public_bits()

    def answer(self, place_of, opening, changes, question):
        """The partial sums of all partitions; a list of Moments."""
        parts = self._partitions.values()
        first, *others = [part.answer(place_of, opening, changes, question) for part in parts]
        if question[0] == "moments":
            return [first, *others]
        for other in others:
            first += other
        return [first]


class _Held:
    """What the client knows of a shelf: where it stands, what is on it, and what it was told."""

    def __init__(self, address, numbers, actor):
        self.address, self.numbers, self.actor = address, numbers, actor
        self.told, self.n_told = None, 0


class Workers(Holders):
    """Partitions that lie with the workers of a Dask cluster.

    Parameters
    ----------
    client : distributed.Client
    parts : list of Future
        Of tuples (X, y, sample_weight).
    """

    def __init__(self, client, parts):
        self._client, self._parts = client, parts
        self._held, self._n_losses = [], 0

    def look(self, reader):
        self._reader, found, bits = reader, {}, set()
        self._hold(range(len(self._parts)))
        for held in self._held:
            facts, of_worker = self._result(held, held.actor.look())
            found |= facts
            bits.add(of_worker)
        return [found[number] for number in sorted(found)], bits

    def ask(self, place_of, dialogue, question, numbers):
        answers, left = [], set(numbers)
        while left:
            asked = []
            for held in self._held:
                if left & set(held.numbers):
                    asked.append((held, self._tell(held, place_of, dialogue, question)))
            lost = []
            for held, pending in asked:
                try:
                    answers += self._result(held, pending)
                    left -= set(held.numbers)
                except OSError:
                    lost.append(held)
            for held in lost:
                self._replace(held)
        return answers

    def _tell(self, held, place_of, dialogue, question):
        """One message: what a shelf does not know yet, and the question."""
        begins = held.told is not dialogue
        changes = dialogue.changes[0 if begins else held.n_told :]
        held.told, held.n_told = dialogue, len(dialogue.changes)
        if question[0] == "sums" and question[1].rows is not None:
            rows = {n: own for n, own in question[1].rows.items() if n in held.numbers}
            question = "sums", question[1]._replace(rows=rows)
        try:
            return held.actor.answer(
                place_of if begins else None,
                dialogue.opening if begins else None,
                changes,
                question,
            )
        except RuntimeError:  # of an actor that is known to be lost
            return None

    # ---- where partitions are ----

    def _hold(self, numbers):
        """Put partitions on shelves, each where it lies already."""
        futures = [self._parts[number] for number in numbers]
        self._await(futures)
        places, on = self._client.who_has(futures), {}
        for number, future in zip(numbers, futures, strict=True):
            addresses = sorted(places[future.key])
            on.setdefault(min(addresses, key=lambda a: len(on.get(a, ()))), []).append(number)
        shelves = []
        for address, own in on.items():
            shelf = self._client.submit(
                Shelf,
                self._reader,
                own,
                *(self._parts[number] for number in own),
                actor=True,
                workers=[address],
                allow_other_workers=False,
                pure=False,
            )
            shelves.append((address, own, shelf))
        for address, own, shelf in shelves:
            with self._client.as_current():  # a copy is bound to this client, not to the default
                self._held.append(_Held(address, own, copy.copy(shelf.result())))

    def _await(self, futures):
        """Until all partitions lie somewhere; Dask makes those anew that were lost."""
        began = time.monotonic()
        while True:
            self._check_client()
            try:
                with self._client.as_current():
                    wait(futures, timeout=_GLANCE)
                break
            except TimeoutError:
                if self._addresses():
                    began = time.monotonic()
                elif time.monotonic() - began > _PATIENCE:
                    raise RuntimeError(
                        f"the cluster had no worker for {_PATIENCE:g} s; what was charged stays "
                        "charged. Start some and fit again"
                    ) from None
            except Exception:  # of what was cancelled, in words of Dask's version
                break
        status = {future.status for future in futures} - {"finished"}
        if status:
            raise RuntimeError(
                f"partitions could not be made ({', '.join(sorted(status))}); what was charged "
                "stays charged. X.persist() shows the error, or the cluster was restarted, or lost "
                "data of which Dask has no graph (scattered, say)"
            )

    def _replace(self, lost):
        """What was on a lost shelf goes on others."""
        self._n_losses += 1
        if self._n_losses > _MOST_LOSSES:
            raise RuntimeError(f"{self._n_losses} workers were lost in one fit; what was charged "
                               "stays charged")
        self._held.remove(lost)
        lost.actor = None
        self._hold(lost.numbers)

    def _addresses(self):
        return set(self._client.scheduler_info(n_workers=-1)["workers"])

    def _check_client(self):
        if self._client.status != "running":
            raise RuntimeError(
                f"the scheduler is gone (the client is {self._client.status}): the fit can't go "
                "on; what was charged stays charged. Connect a new client and fit again, which is "
                "another charge"
            )

    def _result(self, held, pending):
        """Of a message; an OSError if its worker is lost."""
        while pending is not None:
            try:
                return pending.result(timeout=_GLANCE)
            except TimeoutError:
                self._check_client()
                if held.address not in self._addresses():
                    break
        self._check_client()
        raise OSError(f"worker {held.address} is lost")
