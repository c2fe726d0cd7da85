#!/usr/bin/env python3
"""A program to evaluate behind emulated links: both ends of a stack, in the kernel's TCP or in UDP without any control.

    sudo anabranch evaluate rfc9743 --testbed --case range,harm-drop-tail --quick
        --server 'interop/peer.py serve cubic' -- interop/peer.py fetch
    sudo anabranch evaluate rfc9743 --testbed --case harm-drop-tail --quick
        --server 'interop/peer.py blast 8' -- interop/peer.py ask

`serve` sends over TCP under a congestion control of the kernel, `blast` sends UDP at a rate in Mbit/s whatever is
lost. Port, address, seconds and bytes come from the environment, as docs/testbed.md has it.
"""
import os
import socket
import sys
import threading
import time

ADDRESS = os.environ["ANABRANCH_SERVER"], int(os.environ["ANABRANCH_PORT"])
SECONDS = float(os.environ.get("ANABRANCH_SECONDS", "inf"))
BYTES = int(os.environ.get("ANABRANCH_BYTES", "-1"))
PIECE = 1 << 16
# Payload of a datagram that fills a packet of 1500 bytes.
DATAGRAM = 1472


def serve(control):
    """Sends to each connection as much as is wanted."""
    listener = socket.socket()
    # Before it listens: connections inherit the control and begin under no other.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, control.encode())
    listener.bind(ADDRESS)
    listener.listen(128)
    while True:
        connection, _ = listener.accept()
        threading.Thread(target=send, args=(connection,), daemon=True).start()


def send(connection):
    left = BYTES
    with connection:
        try:
            while left:
                piece = PIECE if left < 0 else min(left, PIECE)
                connection.sendall(bytes(piece))
                left -= piece if left > 0 else 0
        except OSError:
            pass  # The client has what it wanted.


def fetch():
    """Receives until the bytes are there or the seconds have passed."""
    with socket.create_connection(ADDRESS) as connection:
        left, end = BYTES, time.monotonic() + SECONDS
        while left and time.monotonic() < end:
            if SECONDS < float("inf"):
                connection.settimeout(max(end - time.monotonic(), 0.001))
            try:
                data = connection.recv(PIECE)
            except TimeoutError:
                break
            if not data:
                break
            left -= len(data) if left > 0 else 0
    sys.exit(0 if left <= 0 else 1)


def blast(mbit):
    """Sends datagrams at a rate to whoever has asked."""
    sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sender.bind(ADDRESS)
    _, client = sender.recvfrom(PIECE)
    begin, count, payload = time.monotonic(), 0, bytes(DATAGRAM)
    while True:
        due = (time.monotonic() - begin) * float(mbit) * 1e6 / 8 / (DATAGRAM + 28)
        while count < due:
            sender.sendto(payload, client)
            count += 1
        time.sleep(0.001)


def ask():
    """Asks for datagrams and takes them."""
    receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    receiver.settimeout(0.2)
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        receiver.sendto(b"ask", ADDRESS)
        try:
            while time.monotonic() < end:
                receiver.recv(PIECE)
        except TimeoutError:
            pass


if __name__ == "__main__":
    {"serve": serve, "fetch": fetch, "blast": blast, "ask": ask}[sys.argv[1]](*sys.argv[2:])
