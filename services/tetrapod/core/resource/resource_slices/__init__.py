"""ResourceSlices: definition, validation and table columns."""
