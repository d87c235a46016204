"""`python -m vgae` is the command `vgae`."""

from vgae.cli import main

if __name__ == "__main__":
    main()
