"""Handlers of HTTP requests by verb and subresource; `kschedd.service` does the work."""
