"""Dask workers as holders of partitions: an actor on each of them, and one message an update.

An actor keeps what its partitions remember (margins) in the memory of its worker. If the worker is
lost, Dask makes the partitions anew from their graph, another actor takes them, and is told the
whole story: its answers are the same integers.
"""

import copy
import time
from concurrent.futures import CancelledError

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
        self._held, self._facts, self._n_losses = [], {}, 0

    def look(self, reader):
        self._reader, bits = reader, set()
        self._hold(range(len(self._parts)))
        for held in self._held:
            found, of_worker = self._result(held.address, held.actor.look())
            self._facts |= found
            bits.add(of_worker)
        return [self._facts[number] for number in sorted(self._facts)], bits

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
                    answers += self._result(held.address, pending)
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
        left = set(numbers)
        while left:
            on = self._places(sorted(left))
            shelves = [(address, own, self._shelf(address, own)) for address, own in on.items()]
            for address, own, shelf in shelves:
                try:
                    actor = self._result(address, shelf)
                except OSError:  # it was lost before the scheduler knew
                    self._count_loss()
                    continue
                with self._client.as_current():  # a copy is bound to this client, not the default
                    self._held.append(_Held(address, own, copy.copy(actor)))
                left -= set(own)

    def _places(self, numbers):
        """Workers by address, and the numbers of partitions that each of them is to hold."""
        on = {}
        while not on:
            self._await([self._parts[number] for number in numbers])
            try:
                places = self._client.who_has([self._parts[number] for number in numbers])
            except CancelledError:  # since then, of which the next look speaks
                continue
            there = self._addresses()
            for number in numbers:
                addresses = there & set(places.get(self._parts[number].key, ()))
                if addresses:
                    address = min(sorted(addresses), key=lambda a: len(on.get(a, ())))
                    on.setdefault(address, []).append(number)
            if not on:  # what is lost is being made anew
                time.sleep(_GLANCE / 10)
        return on

    def _shelf(self, address, numbers):
        return self._client.submit(
            Shelf,
            self._reader,
            numbers,
            *(self._parts[number] for number in numbers),
            actor=True,
            workers=[address],
            allow_other_workers=False,
            pure=False,
        )

    def _await(self, futures):
        """Until all partitions lie somewhere; Dask makes those anew that were lost."""
        began = time.monotonic()
        while True:
            self._check_client()
            try:
                with self._client.as_current():
                    wait(futures, timeout=_GLANCE)
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
            # Between waiting and looking a worker may die: what is lost is being made anew.
            status = {future.status for future in futures}
            if not status & {"lost", "pending"}:
                break
        if failed := {future.status for future in futures} & {"cancelled", "error"}:
            raise RuntimeError(
                f"partitions could not be made ({', '.join(sorted(failed))}); what was charged "
                "stays charged. X.persist() shows the error, or the cluster was restarted, or lost "
                "data of which Dask has no graph (scattered, say)"
            )

    def _replace(self, lost):
        """What was on a lost shelf goes on others."""
        self._count_loss()
        self._held.remove(lost)
        lost.actor = None
        self._hold(lost.numbers)
        for held in self._held:
            if set(held.numbers) <= set(lost.numbers):
                self._check_again(held)

    def _check_again(self, held):
        """Partitions that were made anew are what they were, as far as validation tells."""
        found, bits = self._result(held.address, held.actor.look())
        for number, facts in found.items():
            if isinstance(facts, Exception) or facts[:5] != self._facts[number][:5]:
                raise RuntimeError(
                    f"partition {number} was made anew with other records than before; what was "
                    "charged stays charged. Its graph must read the same records each time"
                )
        if bits != public_bits():
            raise RuntimeError(f"worker {held.address} sums a public example to other bits")

    def _count_loss(self):
        self._n_losses += 1
        if self._n_losses > _MOST_LOSSES:
            raise RuntimeError(
                f"{self._n_losses} workers were lost in one fit; what was charged stays charged"
            )

    def _addresses(self):
        return set(self._client.scheduler_info(n_workers=-1)["workers"])

    def _check_client(self):
        if self._client.status != "running":
            raise RuntimeError(
                f"the scheduler is gone (the client is {self._client.status}): the fit can't go "
                "on; what was charged stays charged. Connect a new client and fit again, which is "
                "another charge"
            )

    def _result(self, address, pending):
        """Of a message to a worker, or of its shelf; an OSError if the worker is lost."""
        while pending is not None:
            try:
                return pending.result(timeout=_GLANCE)
            except TimeoutError:
                self._check_client()
                if address not in self._addresses():
                    break
        self._check_client()
        raise OSError(f"worker {address} is lost")
