"""Clusters other than the daemon's own: virtual clusters, forks and replays, and the methods for them."""
