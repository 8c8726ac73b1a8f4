"""The admission plugins for built-in kinds."""
