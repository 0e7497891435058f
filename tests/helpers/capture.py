"""What crosses a network interface of this host, as anybody with its cable in hand would see it."""

import contextlib
import os
import socket
import threading
from collections.abc import Iterable, Iterator

import pytest

_EVERY_PROTOCOL = 3  # ETH_P_ALL
_BUFFER_BYTES = 1 << 27
_SO_RCVBUFFORCE = 33


class Capture:
    """Looks for pieces of content in every packet; the packets themselves are not kept."""

    def __init__(self, interface: str, wanted: Iterable[bytes]) -> None:
        self._wanted, self.found = set(wanted), set[bytes]()
        self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_EVERY_PROTOCOL))
        self._socket.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, _BUFFER_BYTES)
        self._socket.bind((interface, 0))
        self._socket.settimeout(0.2)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        while True:
            try:
                packet = self._socket.recv(1 << 17)
            except TimeoutError:
                packet = b""
            self.found |= {piece for piece in self._wanted - self.found if piece in packet}
            if self._over.is_set() and not packet:
                return

    def end(self) -> None:
        self._over.set()
        self._thread.join(30)
        self._socket.close()


@contextlib.contextmanager
def captured(interface: str, wanted: Iterable[bytes]) -> Iterator[Capture]:
    """Skips the test where packets cannot be captured."""
    if os.geteuid() != 0:
        pytest.skip("capturing packets needs root")
    capture = Capture(interface, wanted)
    try:
        yield capture
    finally:
        capture.end()
