"""Bodies of requests and answers: JSON, YAML and protobuf, Status, and what a client accepts."""
