"""The controllers of workloads: Deployment, ReplicaSet, ReplicationController, StatefulSet and DaemonSet."""
