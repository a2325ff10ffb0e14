"""Handlers of HTTP requests by verb and subresource; `kschedd.service` executes the requests."""
