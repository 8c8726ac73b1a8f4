"""The core service: the built-in kinds with their admission plugins and controllers."""
