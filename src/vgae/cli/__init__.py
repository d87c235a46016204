"""The command `vgae`: parsing and printing, one file per group of commands."""
