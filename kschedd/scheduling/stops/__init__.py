"""A stopped attempt as users see it, and the changes they may make to it."""
