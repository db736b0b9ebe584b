"""A place for one thing: what is newer takes the place of what nobody took yet."""

from __future__ import annotations

from threading import Condition
from typing import Generic, TypeVar

T = TypeVar("T")


class Latest(Generic[T]):
    """The newest item, from one thread to another: no queue, so that nothing can pile up.

    >>> slot = Latest()
    >>> slot.put("old"), slot.put("new"), slot.take(0.0), slot.take(0.0)
    (False, True, 'new', None)
    """

    def __init__(self) -> None:
        self._changed = Condition()
        self._item: T | None = None

    def put(self, item: T) -> bool:
        """Return whether an item was lost that nobody had taken."""
        with self._changed:
            lost = self._item is not None
            self._item = item
            self._changed.notify_all()
            return lost

    def take(self, timeout: float) -> T | None:
        """Return the newest item, and wait for it so many seconds; None if none came."""
        with self._changed:
            self._changed.wait_for(lambda: self._item is not None, timeout)
            item, self._item = self._item, None
            self._changed.notify_all()
            return item

    def wait_empty(self, timeout: float) -> bool:
        """Return whether the item was taken within so many seconds."""
        with self._changed:
            return self._changed.wait_for(lambda: self._item is None, timeout)
