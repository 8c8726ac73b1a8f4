"""The Pod Security Standards: the checks of pods for each level and version, and the policies in namespace labels."""
