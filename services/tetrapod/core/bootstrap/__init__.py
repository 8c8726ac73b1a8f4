"""The objects that the server creates at start: system namespaces, the `kubernetes` service, priority classes, flow control."""
