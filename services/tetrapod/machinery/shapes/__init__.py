"""Schema nodes, and the formats and patterns of strings. The packages `schema`, `cel` and `patch` build on them."""
