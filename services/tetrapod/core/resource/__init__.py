"""The kinds of resource.k8s.io/v1 (dynamic resource allocation). Upstream: pkg/apis/resource."""

from typing import Final

GROUP: Final = "resource.k8s.io"
