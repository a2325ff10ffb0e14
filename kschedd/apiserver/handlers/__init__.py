"""Handlers of HTTP requests by verb and subresource, which `kschedd.service` executes."""
