"""KubeSchedulerConfiguration parsed into one internal configuration."""
