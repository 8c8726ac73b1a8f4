"""The Node authorizer: permissions of nodes for the objects of their pods."""
