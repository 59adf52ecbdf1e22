"""Fuzzing of what `stepcast serve` does with the bytes of a connection: python python/tests/fuzz_serve.py [-max_total_time=60] [FOLDER...]

libFuzzer (the package atheris) changes requests, guided by what of serve.py they reach; arguments are libFuzzer's. Requests go through the
real handler without a network; verbs are not run: what they do with words is fuzzed in C++ (fuzz/command_line_fuzz.cpp). Fails where
anything but a Refused escapes, where a request without the token is answered, and where a verb would read a file that was not given.
"""

import io
import json
import os
import re
import sys
import tempfile

try:
    import atheris
except ImportError:
    from stepcast import serve
else:
    with atheris.instrument_imports(include=["stepcast.serve", "http.server", "urllib.parse"]):
        from stepcast import serve

STATUSES = {200, 400, 403, 404, 411, 413, 414, 422, 431, 501, 503, 505}


class Kept(io.BytesIO):
    def close(self):
        """Stays readable."""


class Connection:
    """Of a request that has come whole; keeps what is sent."""

    def __init__(self, data):
        self._data, self.sent = data, Kept()

    def makefile(self, mode, *_):
        return io.BytesIO(self._data) if "r" in mode else self.sent

    def sendall(self, data):
        self.sent.write(data)

    def settimeout(self, _):
        pass

    def setsockopt(self, *_):
        pass


class Server(serve.Server):
    """With nobody to listen to, and a token that requests can have."""

    def __init__(self, given):
        super().__init__("127.0.0.1", 0, [given])
        self.socket.close()
        self.names, self.token = {"127.0.0.1:80"}, "token"


def seeds(given):
    """Whole requests of each kind."""
    def request(what, body=b"", more=""):
        return (f"{what} HTTP/1.1\r\nHost: 127.0.0.1:80\r\nX-Stepcast-Token: token\r\n{more}Content-Length: {len(body)}\r\n\r\n").encode() + body

    def run(*words, **more):
        return request("POST /api/run", json.dumps({"words": words, **more}).encode())

    return [run("predict", "--model", "llama-3-8b", "--gpus", "8"), run("plan", f"--model={given}/config.json", format="html"),
            run("replay", f"{given}/../secret"), run("compare", "a=/etc/passwd,b", format="md"), run("models", format="text"),
            request("POST /api/upload?name=a%2fb.json&group=a1", b"{}"), request("GET /api/files"),
            request("POST /api/remove", b'{"path": "a"}'), request("GET /"), request("GET /frame?token=token"),
            request(f"GET /sweep?folder={given}"), request(f"GET /api/sweep?folder={given}"), request('GET /page?words=["models"]'),
            request("GET /", more="Origin: http://127.0.0.1:80\r\nConnection: keep-alive\r\n") + run("platforms")]


class Target:
    def __init__(self, folder):
        self.given = os.path.join(folder, "given")
        os.mkdir(self.given)
        for name in ("sweep.json", "shard-0000-of-0001.jsonl", "config.json"):
            with open(os.path.join(self.given, name), "w", encoding="utf-8") as out:
                out.write('{"id": "1", "point": {"gpus": 8}}\n')
        with open(os.path.join(folder, "secret"), "w", encoding="utf-8") as out:
            out.write("secret")
        os.chdir(folder)
        self.server = Server(self.given)
        serve._stepcast.run = self.run

    def run(self, words, *_, **__):
        roots = [os.path.realpath(root) + os.sep for root in self.server.questions.roots]
        for text in {part for word in words[1:] for part in (word, *re.split("[=,:]", word))}:
            if text and os.path.lexists(text) and not (os.path.realpath(text) + os.sep).startswith(tuple(roots)):
                raise AssertionError(f"would read {text!r}")
        return 0, "{}", "", {}

    def one(self, data):
        connection = Connection(data)
        serve.Handler(connection, ("127.0.0.1", 1), self.server)
        reply = connection.sent.getvalue()
        for status in re.findall(rb"^HTTP/1\.[01] (\d+)", reply, re.MULTILINE):
            if int(status) not in STATUSES:
                raise AssertionError(f"status {status.decode()}: {reply[:300]!r}")
        if b"HTTP/1.1 200" in reply and b"token" not in data:
            raise AssertionError(f"answered without the token: {reply[:300]!r}")


def fuzz(folder, arguments):
    corpus = os.path.join(folder, "corpus")
    os.mkdir(corpus)
    tempfile.tempdir = folder  # of uploads
    target = Target(folder)
    for number, seed in enumerate(seeds(target.given)):
        with open(os.path.join(corpus, str(number)), "wb") as out:
            out.write(seed)
    atheris.Setup([*arguments, corpus], target.one)
    atheris.Fuzz()


def main():
    arguments = [word if word.startswith("-") else os.path.abspath(word) for word in sys.argv]
    arguments.insert(1, f"-artifact_prefix={os.getcwd()}/")
    with tempfile.TemporaryDirectory() as folder:
        child = os.fork()  # libFuzzer ends its process
        if child == 0:
            fuzz(folder, arguments)
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


if __name__ == "__main__":
    sys.exit(main())
