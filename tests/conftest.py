import os

from hypothesis import settings

# As the command does for itself: threads that wait soon sleep, so that the suite does not crawl on a busy machine.
os.environ.setdefault("GOMP_SPINCOUNT", "2000")

# The same examples in every run, and no limit on the time an example takes.
settings.register_profile("repeatable", deadline=None, derandomize=True)
settings.load_profile("repeatable")
