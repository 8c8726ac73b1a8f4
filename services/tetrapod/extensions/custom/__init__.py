"""Custom resources: storage, conversion between versions, validation and handlers."""
