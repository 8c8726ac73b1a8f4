"""The functions of CEL: one module for each library, combined by `registry`."""
