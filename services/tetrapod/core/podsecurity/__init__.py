"""The Pod Security Standards."""
