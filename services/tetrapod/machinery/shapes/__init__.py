"""What values look like: nodes of schemas, formats and patterns of strings. Engines that work by them stand above (schema, cel, patch)."""
