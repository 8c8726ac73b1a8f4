"""The rules of `tetrapod proxy` beside those of kube-proxy, over generated states (`make proxy-states`)."""
