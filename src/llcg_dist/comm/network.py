"""Addresses and interfaces: where a job listens, and through which interface its ranks talk."""

import socket


def listen_on(host: str, port: int) -> socket.socket:
    """A listening socket on this one address (port 0: any free one). OSError where it is not ours, or taken."""
    family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # connections of an earlier job may linger
        listener.bind(address)
        listener.listen(socket.SOMAXCONN)
    except OSError:
        listener.close()
        raise
    return listener
