"""Functions and operators of CEL and of Kubernetes' libraries. Importing this package registers all of them."""

from kschedd.cel.functions import authorizer, collections, network, quantities, standard, text, times

__all__ = ["authorizer", "collections", "network", "quantities", "standard", "text", "times"]
