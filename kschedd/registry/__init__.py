"""Rules of kube-apiserver for each kind: defaults, validation, and immutable fields."""
