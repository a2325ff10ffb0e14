"""Clusters that are not the daemon's own: virtual ones, forks and replays, and the methods over them."""
