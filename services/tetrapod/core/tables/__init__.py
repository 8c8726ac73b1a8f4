"""Table columns and rows of the built-in kinds (upstream: pkg/printers/internalversion/printers.go)."""
