"""The objects that the server creates at start.

These are the system namespaces, the `kubernetes` service, priority classes and the objects of flow control.
"""
