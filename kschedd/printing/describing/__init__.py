"""`describe`, in words."""
