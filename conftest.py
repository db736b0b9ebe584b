"""Where there is no torch, which is an extra, doctests of its engine are left out."""

from importlib.util import find_spec

collect_ignore_glob = [] if find_spec("torch") else ["src/psmt/engines/torch/*"]
