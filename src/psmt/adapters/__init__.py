"""PSMT with the interfaces of other libraries: `psmt.adapters.sktime` and `psmt.adapters.river`.

Each module needs the extra of its name, as in ``pip install "psmt[sktime]"``.
"""
