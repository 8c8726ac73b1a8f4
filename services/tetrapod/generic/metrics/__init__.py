"""Metrics under upstream's names, and the limits on their series.

Each package declares its own metrics with these classes.
"""
