"""How fast is a link? One transfer between two hosts, timed where it arrives."""

import subprocess
import sys

from tests.helpers.netns import Host

_PORT = 5201
_RECEIVE = f"""
import socket, sys, time
listener = socket.create_server((sys.argv[1], {_PORT}))
print("ready", flush=True)
connection, _ = listener.accept()
total, started = len(connection.recv(1 << 20)), time.perf_counter()
while chunk := connection.recv(1 << 20):
    total += len(chunk)
print(8 * total / 1e6 / (time.perf_counter() - started))
"""
_SEND = f"""
import socket, sys
with socket.create_connection((sys.argv[1], {_PORT}), timeout=30) as connection:
    connection.sendall(bytes(int(sys.argv[2])))
"""


def megabits_per_second(sender: Host, receiver: Host, num_bytes: int) -> float:
    receive = receiver.command(sys.executable, "-c", _RECEIVE, receiver.address)
    with subprocess.Popen(receive, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            process.stdout.readline()
            send = sender.command(sys.executable, "-c", _SEND, receiver.address, str(num_bytes))
            subprocess.run(send, check=True, timeout=120)
            return float(process.communicate(timeout=30)[0])
        finally:
            process.kill()
