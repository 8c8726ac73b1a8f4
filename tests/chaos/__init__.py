"""Fault injection: concurrent clients record their operations while faults happen, and a checker proves that the record
is consistent.

`make chaos` (`python -m chaos`) runs all faults; tests/e2e/test_chaos.py is the short form.
docs/explanation/reliability.md has the results.
"""
