"""Traces of requests: `spans.py` records spans, `asked.py` returns the trace for `?trace=1`, `provider.py` exports it by OTLP."""
