"""Node: its definition, strategy, defaults, validation, columns, and the proxy to a node."""
