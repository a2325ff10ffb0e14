"""The controllers of batch workloads: Job, CronJob, and the deletion of finished Jobs."""
