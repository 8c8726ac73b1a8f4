"""What the subresources of pods, nodes and services share: the backends, the proxying of requests, and the stores."""
