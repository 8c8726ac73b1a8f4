"""Web pages that show what a server does: the waterfall of one request, and the console (`tetrapod console`).

Modules here import FastAPI only where the console needs it, because `tetrapod trace --html` works without it.
"""
