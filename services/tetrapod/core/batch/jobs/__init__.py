"""Job: its definition, strategies, defaults, validation, warnings and columns."""
