"""Benchmarks: the whole product on one machine, as it is used. `python -m bench --help` lists the workloads."""
