"""ResourceSlices."""
