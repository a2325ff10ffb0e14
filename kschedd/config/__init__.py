"""The configuration of the scheduler: KubeSchedulerConfiguration parsed into one internal form."""
