"""Kinds that are served in two versions: how one becomes the other without loss."""
