"""The commands of `tetrapod`."""
