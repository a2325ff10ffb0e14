"""A stopped attempt as users see it, and what they may change of it."""
