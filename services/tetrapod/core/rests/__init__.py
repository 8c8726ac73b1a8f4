"""What is no plain object: subresources and resources that answer themselves."""
