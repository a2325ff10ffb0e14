"""Admission: the chain of plugins, and the admission of one request."""
