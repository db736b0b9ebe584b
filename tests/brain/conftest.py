import pytest

from psmt.utils.threads import one_thread


@pytest.fixture(autouse=True, scope="module")
def as_in_a_task():
    """One thread, as tasks have it: many small problems on several would wait for each other."""
    with one_thread():
        yield
