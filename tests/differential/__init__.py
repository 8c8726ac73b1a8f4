"""Differential tests: the same generated requests to kube-apiserver and to Tetrapod (`make differential`)."""
