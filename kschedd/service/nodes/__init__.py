"""Operations on nodes: adding, cordoning, tainting, their kubelets and their usage."""
