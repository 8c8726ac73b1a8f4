"""Run upstream's integration suites against Tetrapod (`make upstream`)."""
