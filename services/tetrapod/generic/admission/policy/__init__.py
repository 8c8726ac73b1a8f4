"""ValidatingAdmissionPolicy and MutatingAdmissionPolicy: admission rules in CEL.

Modules that are imported at startup (plugins, sources, params) do not import CEL. Expressions are compiled when a
policy is first evaluated.
Upstream: staging/src/k8s.io/apiserver/pkg/admission/plugin/policy, plugin/cel
"""
