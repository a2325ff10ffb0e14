"""KubeSchedulerConfiguration read into one internal configuration."""
