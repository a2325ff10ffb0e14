"""The simulated kubelets, which start, end and reject pods on nodes."""
