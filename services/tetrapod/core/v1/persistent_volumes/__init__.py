"""PersistentVolume: its definition, strategy, validation and columns."""
