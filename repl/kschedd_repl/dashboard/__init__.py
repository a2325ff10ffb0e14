"""The dashboard: the cluster on the whole screen."""
