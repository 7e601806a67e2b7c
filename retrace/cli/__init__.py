"""The command `retrace`: its parts, by what they are about."""
