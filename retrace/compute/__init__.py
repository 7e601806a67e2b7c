"""Devices, sharding, seeded generators, FLOPs, padding."""
