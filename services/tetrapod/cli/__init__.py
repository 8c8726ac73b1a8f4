"""The commands: a module for each, and their flags."""
