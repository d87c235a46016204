from hypothesis import settings

# The same examples in every run, and no limit on the time an example takes.
settings.register_profile("repeatable", deadline=None, derandomize=True)
settings.load_profile("repeatable")
