"""Subresources and virtual resources that are not served by a plain store."""
