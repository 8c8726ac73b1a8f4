"""What the four services tell each other beside the Kubernetes API: names, paths and packed headers. No user sees any of it."""
