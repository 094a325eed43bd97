"""Soak and chaos: `make soak MINUTES=30`. Real processes under every fault that a host and a network can have, and an
account of every message. See docs/soak.md."""
