"""rvq beside its peers and beside bare multicast, in the same run: rates, processor time, latency, growth."""
