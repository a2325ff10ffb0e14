"""The rules of Karpenter."""
