"""Plugins that are generic to any API server. Plugins of a single service are in its own package."""
