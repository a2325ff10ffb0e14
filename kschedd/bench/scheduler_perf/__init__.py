"""Benchmarks in the format of kube-scheduler: performance-config.yaml of test/integration/scheduler_perf."""
