"""Figures of whole groups: real processes on loopback or in network namespaces, and worlds of the simulator."""
