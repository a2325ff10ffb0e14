"""The simulated kubelets: start, end and rejection of pods on nodes."""
