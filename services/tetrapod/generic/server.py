"""`GenericAPIServer`: resources, non-resource endpoints, admission, storage and lifecycle put together into one `Handler`.

Each of the four services is one instance of this with its own resources put in; so is an external aggregated server.
Upstream: k8s.io/apiserver/pkg/server/genericapiserver.go. The order of the filters is in `filters/chain.py`.
"""
