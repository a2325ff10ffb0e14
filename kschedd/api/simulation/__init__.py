"""Annotations that tell simulated kubelets how pods and nodes behave."""
