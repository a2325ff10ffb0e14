"""Warnings that kube-apiserver returns for an accepted object."""
