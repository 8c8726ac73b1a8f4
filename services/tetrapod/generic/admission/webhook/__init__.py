"""MutatingAdmissionWebhook and ValidatingAdmissionWebhook (upstream: k8s.io/apiserver/pkg/admission/plugin/webhook)."""
