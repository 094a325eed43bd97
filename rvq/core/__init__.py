"""The protocol as state machines: no sockets, no clock, no tasks, no global randomness."""
