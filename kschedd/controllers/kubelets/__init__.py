"""The simulated kubelets: what runs on a node, and how it starts, ends and is refused there."""
