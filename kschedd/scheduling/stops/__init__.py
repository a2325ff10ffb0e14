"""A stopped attempt as users see it, and the changes that users may make to it."""
