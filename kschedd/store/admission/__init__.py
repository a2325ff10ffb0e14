"""Admission: the plugin chain, and the admission of a single request."""
