"""kube-scheduler's own benchmark files: performance-config.yaml of test/integration/scheduler_perf."""
