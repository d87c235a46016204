"""The process behind the command `vgae` and `python -m vgae`."""

import os

# Threads that wait for each other soon go to sleep instead of spinning on. Where another program keeps a core busy,
# spinning threads take turns on what is left, and training slows down a hundredfold. Read when torch is first
# imported.
if "OMP_WAIT_POLICY" not in os.environ:
    os.environ.setdefault("GOMP_SPINCOUNT", "2000")

from vgae.cli import main

if __name__ == "__main__":
    main()
