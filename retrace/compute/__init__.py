"""Devices, sharding, seeded generators, padding."""
