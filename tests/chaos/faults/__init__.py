"""Faults: each is injected, held for some time, and healed."""
