"""A decorator for methods that change an object completely or not at all, even if they are interrupted."""

from collections.abc import Callable
from copy import copy
from functools import wraps
from typing import Any, TypeVar, cast

from psmt.utils.threads import one_blas_thread

Method = TypeVar("Method", bound=Callable[..., Any])


def all_or_nothing(method: Method) -> Method:
    """Decorator for a method that returns self. The decorated method changes its object completely or not at all.

    The method runs on a copy made by `copy.copy`. If it succeeds, the object takes over the attributes of the copy. The
    method must not change attributes in place, because the copy shares them. Limits on BLAS threads end in any case.

    >>> class Counter:
    ...     n = 0
    ...     @all_or_nothing
    ...     def add(self, value):
    ...         self.n += 1
    ...         self.n += value
    ...         return self
    >>> counter = Counter()
    >>> counter.add("x")
    Traceback (most recent call last):
    ...
    TypeError: unsupported operand type(s) for +=: 'int' and 'str'
    >>> counter.n, counter.add(2).n
    (0, 3)
    """

    @wraps(method)
    def run(self: Any, /, *args: Any, **kwargs: Any) -> Any:
        limit = one_blas_thread()
        try:
            changed = copy(self)
            method(changed, *args, **kwargs)
            self.__dict__ = changed.__dict__  # one instruction
        finally:
            limit.leave()
        return self

    return cast(Method, run)
