"""Diagnosis of workloads: the cause of missing or pending pods, and remedies tried with the whole workload."""
