"""Node-less controllers: what makes a bare API server useful. Each a small class over `Client` and informers.

Upstream runs them in kube-controller-manager; `--controllers` turns each off by its upstream name, so that a stock one may
own them instead.
"""
