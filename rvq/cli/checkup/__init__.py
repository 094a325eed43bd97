"""What `rvq doctor` finds and advises: each part of a host, and of the way to another, in a module of its own."""
