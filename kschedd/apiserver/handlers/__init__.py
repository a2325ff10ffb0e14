"""Answers to requests by verb and subresource, as HTTP has them; `kschedd.service` does the work."""
