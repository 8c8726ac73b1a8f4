"""Service: its definition, strategy, allocation of addresses and ports, defaults, validation, warnings and columns."""
