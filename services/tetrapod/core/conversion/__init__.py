"""Lossless conversion of kinds that are served in two versions."""
