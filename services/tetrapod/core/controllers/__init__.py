"""Controllers that need no nodes: garbage collection, namespace deletion, quota, tokens and others.

Each is a small class over `Client` and informers. Upstream runs them in kube-controller-manager. `--controllers`
disables each by its upstream name, so that a stock kube-controller-manager can run it instead.

Methods that send requests raise StatusError for an error response and Unavailable if the server cannot be reached,
unless they say otherwise. The work queue of the controller logs the error and processes the object again later.
"""
