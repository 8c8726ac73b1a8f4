"""Traces of requests.

`spans.py` records spans, `trace_endpoint.py` returns the trace for `?trace=1`, and `provider.py` exports it by OTLP.
"""
