"""Stopped attempts for users: the view of a stopped attempt, and the changes that users may make to the attempt."""
