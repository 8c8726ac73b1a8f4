"""What the functions of CEL do: a file a library, put together in `registry`."""
