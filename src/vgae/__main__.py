"""The process behind the command `vgae` and `python -m vgae`."""

import os

# Threads that wait for each other sleep instead of spinning. Where another program keeps a core busy, spinning threads
# take turns on what is left and training slows down a hundredfold. The setting is read when torch is first imported.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

from vgae.cli import main  # noqa: E402 - only after the setting

if __name__ == "__main__":
    main()
