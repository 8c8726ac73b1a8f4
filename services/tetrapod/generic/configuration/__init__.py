"""Configuration files: decoding with upstream's error texts, and reloading."""
