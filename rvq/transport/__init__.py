"""Datagrams in and out of this host: multicast sockets and endpoints on the event loop. Knows no frames."""
