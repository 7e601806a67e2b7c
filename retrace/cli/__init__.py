"""The command `retrace`, one file a subcommand."""
