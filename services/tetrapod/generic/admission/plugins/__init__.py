"""Plugins that are generic to any API server; those of one service live with it."""
