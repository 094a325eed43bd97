"""What goes over the wire: frames, their bytes, and many messages in one of them."""
