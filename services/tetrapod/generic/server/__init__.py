"""The assembled server, its table of paths, and the selection of controllers."""
