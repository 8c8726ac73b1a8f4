"""Faults, with nothing lost: concurrent clients write down what they saw while things die, and a checker proves that it fits together.

`python -m chaos` (make chaos) runs long; tests/e2e/test_chaos.py is the short form of it. What was found: docs/explanation/reliability.md.
"""
