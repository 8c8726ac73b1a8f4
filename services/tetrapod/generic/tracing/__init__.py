"""What happens to one request, as spans: `spans.py` records them, `asked.py` answers `?trace=1`, `provider.py` exports them by OTLP."""
