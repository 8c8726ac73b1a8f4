"""A cluster of two nodes on one Linux machine, with Tetrapod as its API server (`make cluster`)."""
