"""The handlers of the verbs, between HTTP and the registry."""
