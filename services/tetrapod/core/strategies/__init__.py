"""The strategies of built-in kinds."""
