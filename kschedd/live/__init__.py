"""A real Kubernetes API server: what is there, held here as it stands and followed as it changes."""
