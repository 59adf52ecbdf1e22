"""How `stepcast serve` stands 200 requests at once beside a program that takes a whole core:

    python python/tests/load_serve.py

100 forecasts, 50 plans, 30 malformed requests and 20 readers that send and read a byte now and then. Prints how long each kind took to be
answered or refused, and the memory of the server at most; exit code 1 where one of the first three kinds took more than 2 s, one was
lost, or the memory was above 1 GB. A slow reader is cut off after serve.MOST_SILENCE_SECONDS; what counts is that nobody waits for it.
"""

import json
import multiprocessing
import os
import re
import socket
import subprocess
import sys
import threading
import time

MOST_SECONDS, MOST_BYTES = 2, 1_000_000_000


def hog(ends):
    while not ends.is_set():
        pass


def http(address, token, method, path, body=b"", wait=20):
    """Status of a request; 0: the connection ended without one."""
    with socket.create_connection(address, timeout=wait) as plain:
        plain.sendall(f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{address[1]}\r\nX-Stepcast-Token: {token}\r\n"
                      f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body)
        reply = b""
        while piece := plain.recv(1 << 16):
            reply += piece
    found = re.match(rb"HTTP/1.1 (\d+)", reply)
    length = re.search(rb"Content-Length: (\d+)", reply)
    whole = found and length and len(reply.split(b"\r\n\r\n", 1)[1]) == int(length.group(1))
    return int(found.group(1)) if whole else 0


def slow(address, token):
    """Asks for the page and reads it a byte at a time for 2 s."""
    with socket.create_connection(address, timeout=20) as plain:
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
        plain.sendall(f"GET / HTTP/1.1\r\nHost: 127.0.0.1:{address[1]}\r\nX-Stepcast-Token: {token}\r\n\r\n".encode())
        first = plain.recv(1)
        for _ in range(10):
            time.sleep(0.2)
            plain.recv(1)
    return 200 if first == b"H" else 0


def measure(address, token):
    """{kind: [(status, seconds)...]} of all at once."""
    def predict(n):
        words = ["predict", "--model", "llama-3-8b", "--platform", "dgx-h100", "--gpus", "64", "--tp", "2", "--gbs", str(64 + 64 * n)]
        return http(address, token, "POST", "/api/run", json.dumps({"words": words}).encode())

    def plan(n):
        words = ["plan", "--model", "llama-3-8b", "--platform", "dgx-h100", "--gpus", "16", "--gbs", str(64 + 64 * n)]
        return http(address, token, "POST", "/api/run", json.dumps({"words": words}).encode())

    def malformed(n):
        return http(address, token, "POST", "/api/run", (b"{" * n, b'{"words": 3}', b"\xff" * n)[n % 3])

    kinds = {"forecast": (predict, 100), "plan": (plan, 50), "malformed": (malformed, 30), "slow": (lambda n: slow(address, token), 20)}
    found = {kind: [] for kind in kinds}
    lock = threading.Lock()

    def one(kind, n):
        began = time.monotonic()
        try:
            status = kinds[kind][0](n)
        except OSError:
            status = 0
        with lock:
            found[kind].append((status, time.monotonic() - began))

    threads = [threading.Thread(target=one, args=(kind, n)) for kind, (_, count) in kinds.items() for n in range(count)]
    for thread in threads[::2] + threads[1::2]:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def main():
    ends = multiprocessing.Event()
    taker = multiprocessing.Process(target=hog, args=(ends,), daemon=True)
    server = subprocess.Popen([sys.executable, "-m", "stepcast.serve", "--port", "0"], stdout=subprocess.PIPE, text=True)
    try:
        line = server.stdout.readline()
        port, token = re.search(r":(\d+)/\?token=(\S+)", line).groups()
        address = ("127.0.0.1", int(port))
        taker.start()
        found = measure(address, token)
        status = open(f"/proc/{server.pid}/status", encoding="utf-8").read()
        most = int(re.search(r"VmHWM:\s+(\d+)", status).group(1)) * 1024
        alive = http(address, token, "GET", "/")
    finally:
        ends.set()
        server.terminate()
        server.wait()
    bad = alive != 200 or most > MOST_BYTES
    for kind, replies in found.items():
        times = sorted(seconds for _, seconds in replies)
        statuses = {code: sum(status == code for status, _ in replies) for code in sorted({status for status, _ in replies})}
        print(f"{kind:10} {len(replies):4}  statuses {statuses}  median {times[len(times) // 2]:.2f} s, longest {times[-1]:.2f} s")
        bad |= 0 in statuses or (kind != "slow" and times[-1] > MOST_SECONDS)
    print(f"memory {most / 1e6:.0f} MB at most; answers afterwards: {alive == 200}; {os.cpu_count()} cores, one of them taken")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
