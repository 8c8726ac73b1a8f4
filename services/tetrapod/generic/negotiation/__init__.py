"""What a client takes and sends: media types, forms of an object, and the text of a refusal. For every server, resources or not."""
