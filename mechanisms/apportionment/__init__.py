"""Splitting a question's error rates over its tests: the published rules and Keyhole's."""
