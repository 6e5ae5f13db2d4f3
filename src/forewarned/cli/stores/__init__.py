"""What commands read and write in a server's store by themselves, without a server."""
