"""What an observer knows of a bus, from what everyone says anyway. See `rvq.core.observer`."""
