"""Makes commits survive a power cut, in a thread of its own: a machine that goes to sleep durably must not hold up everyone else's writes."""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable

from everforge.store import tape
from everforge.wire.errors import Uncertain

log = logging.getLogger(__name__)

Done = Callable[[BaseException | None], None]
AHEAD = 4  # sync in the background when a quarter of what may be unsynced is; the writer itself waits only at the whole


class Syncer:
    """`sync` is called once for all that wait. After it has failed, nothing is promised any more.

    The kernel may drop what it could not write and report success the next time: only a new start, which reads the disk again, knows what is there.
    """

    def __init__(self, sync: Callable[[], None]) -> None:
        self._sync = sync
        self._queue: queue.SimpleQueue[Done | None] = queue.SimpleQueue()
        self._failed: BaseException | None = None
        self._committed = (0, 0)  # positions and instructions so far; set by the writer
        self._synced = (0, 0)  # of those, how many are on the disk
        self._asked = False  # a sync ahead of need is on its way
        self._thread = threading.Thread(target=self._run, name="store-syncer", daemon=True)
        self._thread.start()

    @property
    def failed(self) -> bool:
        return self._failed is not None

    def before_commit(self, positions: int, instructions: int) -> None:
        """The writer is about to commit so many. Raises Uncertain after a failed sync: then nothing more is accepted."""
        if self._failed is not None:
            raise self._error()
        unsynced = (self._committed[0] - self._synced[0] + positions, self._committed[1] - self._synced[1] + instructions)
        if _over(unsynced, 1):
            self._sync_all()
        elif not self._asked and _over(unsynced, AHEAD):
            self._asked = True
            self._queue.put(_nobody_waits)

    def committed(self, positions: int, instructions: int) -> None:
        """The writer has."""
        self._committed = (self._committed[0] + positions, self._committed[1] + instructions)

    def after_sync(self, done: Done) -> None:
        """Call `done` when everything committed until now is on the disk, or with the reason why that is not known."""
        self._queue.put(done)

    def close(self) -> None:
        """After the last `after_sync`: those who wait are served first."""
        self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        last = False
        while not last and (first := self._queue.get()) is not None:
            waiting = [first]
            while not self._queue.empty():  # nobody else takes from it
                done = self._queue.get()
                if done is None:
                    last = True
                    break
                waiting.append(done)
            self._serve(waiting)

    def _serve(self, waiting: list[Done]) -> None:
        error: BaseException | None = None
        try:
            self._sync_all()
        except Uncertain as e:
            error = e
        self._asked = False
        for done in waiting:
            done(error)

    def _sync_all(self) -> None:
        reached = self._committed  # read before the sync: what is committed during it may or may not be caught
        if self._failed is None:
            try:
                self._sync()
            except Exception as e:
                log.critical("the disk did not take what the store wrote: %s", e)
                self._failed = e
        if self._failed is not None:
            raise self._error()
        self._synced = max(self._synced, reached)

    def _error(self) -> Uncertain:
        return Uncertain(
            f"the disk did not take what the store wrote ({self._failed}): what was written last may not be there; check the disk and start again"
        )


def _over(unsynced: tuple[int, int], part: int) -> bool:
    return unsynced[0] * part > tape.UNSYNCED_POSITIONS_MAX or unsynced[1] * part > tape.UNSYNCED_INSTRUCTIONS_MAX


def _nobody_waits(_: BaseException | None) -> None:
    pass
