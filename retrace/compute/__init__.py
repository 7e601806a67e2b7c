"""Devices, leases on GPUs, the launcher, sharding, seeded generators, padding."""
