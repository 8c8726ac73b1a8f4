"""ValidatingAdmissionPolicy and MutatingAdmissionPolicy: rules of admission written in CEL.

What is imported at start-up (plugins, sources, params) knows nothing of CEL; expressions are compiled when a policy is first asked.
Upstream: k8s.io/apiserver/pkg/admission/plugin/policy and plugin/cel.
"""
