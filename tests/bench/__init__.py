"""`make bench`: measure the cost of the servers, compared with a raw ASGI "hello" in the same minute and, if present,
the real kube-apiserver.
"""
