"""Tracing, logs, the exposition of metrics, metrics of the process, and the debug endpoints."""
