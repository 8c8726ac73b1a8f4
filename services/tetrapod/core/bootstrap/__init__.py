"""What the server itself makes sure of at start: system namespaces, the `kubernetes` service, priority classes, flow control."""
