"""The RBAC authorizer and the kinds of rbac.authorization.k8s.io."""
