"""The command `retrace`; a file has one command or a few on one subject."""
