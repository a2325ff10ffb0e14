"""The controllers of batch work: Job, CronJob, and the deletion of finished Jobs."""
