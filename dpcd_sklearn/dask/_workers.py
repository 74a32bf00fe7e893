"""Dask workers as holders of partitions: an actor on each of them, and one message an update.

An actor keeps what its partitions remember (margins) in the memory of its worker. If the worker is
lost, Dask makes the partitions anew from their graph, another actor takes them, and is told the
whole story: its answers are the same integers.
"""

import copy
import time
import weakref
from concurrent.futures import CancelledError
from contextlib import suppress

from distributed import KilledWorker, wait

from ..partitions._partition import Partition, public_bits, rows_of, with_rows
from ..partitions._partitioned_records import Holders, each_once

# Seconds: between two looks at whether a worker is still there, and for one to come (back).
_GLANCE, _PATIENCE = 1.0, 60.0
_CLOSING = "cannot schedule new futures"  # of a worker whose threads are shut down: Python's words
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
        self._partitions, self._found, self._bits = {}, {}, public_bits()
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
        return self._found, self._bits

    def answer(self, place_of, opening, changes, question):
        """Numbers of partitions, and their partial sums together; a list of Moments."""
        parts = self._partitions.values()
        found = [part.answer(place_of, opening, changes, question) for part in parts]
        return list(self._partitions), found if question[0] == "moments" else [sum(found)]


class _Held:
    """The client's view of a shelf: where it stands, what is on it, and what it was told."""

    def __init__(self, address, numbers, shelf, actor):
        self.address, self.numbers, self.shelf, self.actor = address, numbers, shelf, actor
        self._dialogue, self._n_told = None, 0

    def news(self, dialogue):
        """Whether a dialogue begins for it, and the changes that it was not told yet."""
        begins = self._dialogue is None or self._dialogue() is not dialogue
        changes = dialogue.changes[0 if begins else self._n_told :]
        # a weak reference: a dialogue leads to who holds this
        self._dialogue, self._n_told = weakref.ref(dialogue), len(dialogue.changes)
        return begins, changes

    def call(self, name, *arguments):
        """A message to the shelf; None if Dask knows that it is lost."""
        try:
            return getattr(self.actor, name)(*arguments)
        except RuntimeError:
            return None

    @property
    def is_lost(self):
        """Whether Dask knows so: of a worker that is back at its address, the address tells not."""
        try:
            return self.actor.look is None
        except RuntimeError:
            return True


class Workers(Holders):
    """Partitions that lie with the workers of a Dask cluster.

    Parameters
    ----------
    client : distributed.Client
    parts : list of Future
        Futures of tuples (X, y, sample_weight).
    """

    def __init__(self, client, parts):
        self._client, self._parts = client, parts
        self._held, self._facts, self._bits, self._n_losses = [], {}, set(), 0
        weakref.finalize(self, _forget, client, self._held).atexit = False

    def look(self, reader):
        self._reader = reader
        self._hold(range(len(self._parts)))
        return [self._facts[number] for number in sorted(self._facts)], self._bits

    def ask(self, place_of, dialogue, question, numbers):
        answers, answered, left = [], [], set(numbers)
        while left:
            asked = []
            for held in self._held:
                if left & set(held.numbers):
                    asked.append((held, self._tell(held, place_of, dialogue, question)))
            lost = []
            for held, pending in asked:
                try:
                    of, found = self._result(held.address, pending, held)
                except OSError:
                    lost.append(held)
                    continue
                answered += of
                answers += found
                left -= set(held.numbers)
            self._replace(lost)
        each_once(answered, numbers)
        return answers

    def _tell(self, held, place_of, dialogue, question):
        """One message: what a shelf does not know yet, and the question."""
        begins, changes = held.news(dialogue)
        if (rows := rows_of(question)) is not None:
            question = with_rows(question, {n: rows[n] for n in held.numbers if n in rows})
        of = (place_of, dialogue.opening) if begins else (None, None)
        return held.call("answer", *of, changes, question)

    # ---- where partitions are ----

    def _hold(self, numbers):
        """Put partitions on shelves, each where it lies already, and look at them there.

        A worker may be lost at any of these moments; then what was on it is tried once more.
        """
        left = set(numbers)
        while left:
            shelves = [
                (address, own, self._shelf(address, own))
                for address, own in self._places(sorted(left)).items()
            ]
            for address, own, shelf in shelves:
                try:
                    actor = self._of_scheduler(self._bound, self._result(address, shelf))
                    held = _Held(address, own, shelf, actor)
                    found, bits = self._result(address, held.call("look"), held)
                except OSError:
                    self._count_loss()
                    continue
                self._learn(address, found, bits)
                self._held.append(held)
                left -= set(own)

    def _learn(self, address, found, bits):
        """Keep facts of partitions, which are the same made anew, as far as validation tells."""
        again = found.keys() & self._facts.keys()
        for number in again:
            pair = found[number], self._facts[number]
            invalid = any(isinstance(facts, Exception) for facts in pair)
            if invalid or pair[0].differing(pair[1]) is not None:
                raise RuntimeError(
                    f"partition {number} was made anew with other records than before; what was "
                    "charged stays charged. Its graph must read the same records each time"
                )
        if again and bits not in self._bits:
            raise RuntimeError(f"worker {address} sums a public example to other bits")
        self._facts |= found
        self._bits.add(bits)

    def _replace(self, lost):
        """Put the partitions of lost shelves on others."""
        for held in lost:
            self._count_loss()
            self._held.remove(held)
        _forget(self._client, lost)  # by workers that are there after all
        self._hold([number for held in lost for number in held.numbers])

    def _places(self, numbers):
        """Workers by address, and the numbers of partitions that each of them is to hold."""
        on = {}
        while not on:
            self._await([self._parts[number] for number in numbers])
            try:
                places = self._of_scheduler(
                    self._client.who_has, [self._parts[number] for number in numbers]
                )
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
        return self._of_scheduler(
            self._client.submit,
            Shelf,
            self._reader,
            numbers,
            *(self._parts[number] for number in numbers),
            actor=True,
            workers=[address],
            allow_other_workers=False,
            pure=False,
        )

    def _bound(self, actor):
        with self._client.as_current():  # a copy is bound to this client, not the default
            return copy.copy(actor)

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

    # ---- who is there ----

    def _count_loss(self):
        self._n_losses += 1
        if self._n_losses > _MOST_LOSSES:
            raise RuntimeError(
                f"{self._n_losses} workers were lost in one fit; what was charged stays charged"
            )

    def _addresses(self):
        # not scheduler_info, whose workers another thread of the client empties now and then
        return set(self._of_scheduler(self._client.nthreads))

    def _check_client(self, gone=False):
        if gone or self._client.status != "running":
            raise RuntimeError(
                f"the scheduler is gone (the client is {self._client.status}): the fit can't go "
                "on; what was charged stays charged. Connect a new client and fit again, which is "
                "another charge"
            )

    def _of_scheduler(self, ask, *arguments, **options):
        """The scheduler's answer."""
        try:
            return ask(*arguments, **options)
        except CancelledError:
            raise
        except Exception as error:
            self._check_client(gone=isinstance(error, OSError))
            raise

    def _result(self, address, pending, held=None):
        """The answer to a message, or a shelf that was made; an OSError if the worker is lost."""
        while pending is not None:
            was_done = pending.done()
            try:
                return pending.result(timeout=_GLANCE)
            except TimeoutError:
                self._check_client()
                if was_done:  # an error of that name
                    break
                if address not in self._addresses() or (held is not None and held.is_lost):
                    break
            except (CancelledError, KilledWorker):  # with its worker
                break
            except OSError:
                raise
            except Exception as error:
                self._check_client()
                if isinstance(error, RuntimeError) and (held is None or _CLOSING in str(error)):
                    break  # of a shelf that was lost as soon as it was made, or of a closing worker
                raise
        self._check_client()
        raise OSError(f"worker {address} is lost")


def _forget(client, held):
    """Have workers drop shelves. It is not waited for: garbage is collected in any thread.

    Dropping all references to an actor is not enough, since Dask's messages to it are cycles.
    """
    if held and client.status == "running":
        with suppress(RuntimeError):  # of a loop that is closed
            client.loop.add_callback(_cancel, client, [one.shelf for one in held])


async def _cancel(client, shelves):
    with suppress(Exception):  # of a scheduler that is gone
        await client.cancel(shelves, asynchronous=True)
