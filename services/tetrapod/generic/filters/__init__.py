"""The filters of the handler chain, one in each module."""
