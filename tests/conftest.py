"""What holds for all tests.

Hypothesis draws the same examples in every run, so that what passed passes again; KSCHEDD_EXPLORE=1 has it draw others.
"""

import os

from hypothesis import settings

settings.register_profile("repeatable", derandomize=True, database=None, deadline=None)
settings.register_profile("explore", deadline=None)
settings.load_profile("explore" if os.environ.get("KSCHEDD_EXPLORE") else "repeatable")
