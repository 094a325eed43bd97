"""What rvq reaches, measured: `python -m bench` (or `make bench`). See bench/README.md for how to read it."""
