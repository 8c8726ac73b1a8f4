"""The Node authorizer, which allows nodes to access the objects that their pods need."""
