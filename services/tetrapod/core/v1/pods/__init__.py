"""Pod: its definition, strategies, defaults, validation and columns, and its subresources, a module for each."""
