"""Encoding of requests and answers: JSON, YAML and protobuf, Status, and content negotiation."""
