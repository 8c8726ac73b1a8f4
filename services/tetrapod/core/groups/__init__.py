"""The built-in resources of each API group."""
