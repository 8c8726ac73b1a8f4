"""The parts that subresources of pods, nodes and services share: backends, forwarding of requests, and the stores."""
