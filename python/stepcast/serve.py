"""`stepcast serve`: a page in the browser that asks and shows answers, and the same questions as JSON (docs/serve.md).

Everything is answered by the verbs of the program, in this process: a question is a command line, and its answer what
that command line prints. Only this machine is listened to unless --host says otherwise; a question needs the token of the
address that was printed; no file is read outside the folders that were given, and none is written.
"""

import argparse
import base64
import contextlib
import functools
import hashlib
import heapq
import hmac
import html
import itertools
import json
import os
import re
import secrets
import shutil
import signal
import socket
import sys
import tempfile
import threading
import time
from collections import OrderedDict
from concurrent.futures import Future
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlencode, urlsplit

from stepcast import _stepcast
from stepcast._help import options_of
from stepcast._verbs import _words

VERBS = ("predict", "plan", "shard", "replay", "compare", "inspect", "models", "platforms")
FORMATS = ("json", "md", "html", "text")
MOST_WORDS, MOST_CHARACTERS = 256, 65536  # of a question
MOST_UPLOAD_BYTES = 512 << 20  # all together
MOST_SWEEP_BYTES = 256 << 20  # of the rows of a sweep
MOST_SECONDS = 30  # of an answer
MOST_BUSY_SECONDS = 1.6  # until an answer is there, as far as can be told; who would wait longer is refused, and the page asks again
MOST_SILENCE_SECONDS = 5  # of a browser in the middle of a request
MOST_KEPT = 64  # answers
MOST_LISTED = 200  # files of the given folders
LONG = ("plan", "shard", "replay")  # verbs that wait for shorter ones


class Refused(Exception):
    """A request that is not answered, with the status that says why."""

    def __init__(self, status, why):
        super().__init__(why)
        self.status = status


class Processors:
    """Lets as many answers be made at once as there are processors: the short ones first, then who came first."""

    def __init__(self, count):
        self._free, self._waiting, self._came = count, [], 0
        self._seconds = {False: 0.2, True: 0.4}  # that an answer took of late
        self._changed = threading.Condition()

    def take(self, is_long):
        """False where none became free so early that the answer may be there in time."""
        with self._changed:
            self._came += 1
            mine, began = (is_long, self._came), time.monotonic()
            heapq.heappush(self._waiting, mine)
            while self._free == 0 or self._waiting[0] != mine:
                left = began + MOST_BUSY_SECONDS - 1.25 * self._seconds[is_long] - time.monotonic()
                if left <= 0 or not self._changed.wait(left):
                    self._waiting.remove(mine)
                    heapq.heapify(self._waiting)
                    self._changed.notify_all()
                    return False
            heapq.heappop(self._waiting)
            self._free -= 1
            self._changed.notify_all()
            return True

    def give_back(self, is_long, seconds):
        with self._changed:
            self._free += 1
            seconds = min(seconds, MOST_BUSY_SECONDS / 2)  # one that takes a minute does not end all waiting
            self._seconds[is_long] = max(seconds, 0.7 * self._seconds[is_long] + 0.3 * seconds)
            self._changed.notify_all()


class Questions:
    """What may be asked, and the answers; knows nothing of HTTP."""

    def __init__(self, folders):
        given = [Path(folder).resolve(strict=True) for folder in folders]
        self.uploads = Path(tempfile.mkdtemp(prefix="stepcast-serve-"))
        self.roots = [*given, self.uploads.resolve()]
        self._uploaded_bytes = 0
        self._lock = threading.Lock()
        self._processors = Processors(max(2, os.cpu_count() or 1))
        self._kept = OrderedDict()  # answers that no file is part of, those that are being made, too; the one asked for last at the end

    def close(self):
        shutil.rmtree(self.uploads, ignore_errors=True)

    def check(self, words):
        """The words of a command line without the name of the program, or Refused."""
        if not isinstance(words, list) or not words or not all(isinstance(word, str) for word in words):
            raise Refused(400, "words: found no list of texts, expected a verb and its flags")
        if len(words) > MOST_WORDS or sum(map(len, words)) > MOST_CHARACTERS or any("\0" in word for word in words):
            raise Refused(413, f"words: expected at most {MOST_WORDS}, of {MOST_CHARACTERS} characters together")
        if words[0] not in VERBS:
            raise Refused(400, f"found `{words[0][:40]}`, expected one of {', '.join(VERBS)}")
        return words

    def options(self):
        """Verb -> its flags, as the program's help lists them."""
        return {verb: options_of(_stepcast.run([verb, "--help-all"], False, None)[1]) for verb in VERBS}

    def _names_files(self, words):
        """Whether one of the words does; Refused where it must not be read."""
        return any([self._check_place(text) for word in words[1:] for text in {word, *re.split("[=,:]", word)}])

    def _check_place(self, text):
        # A name is one of a model or a platform, unless there is a file of that name where the server was started.
        place = Path(text)
        if not text or not (place.is_absolute() or ".." in place.parts or os.path.lexists(text)):
            return False
        try:
            found = place.resolve()
        except (OSError, RuntimeError, ValueError):
            raise Refused(403, f"{text[:80]}: cannot be read") from None
        if not any(found == root or root in found.parents for root in self.roots):
            raise Refused(403, f"{text[:80]}: not in a folder that was given at the start")
        return True

    def ask(self, words, kind="json"):
        """Exit code, what is printed, and the error."""
        if kind not in FORMATS:
            raise Refused(400, f"format: found `{str(kind)[:40]}`, expected one of {', '.join(FORMATS)}")
        words = self.check(words)
        if self._names_files(words) or "STEPCAST_PLATFORMS" in os.environ:
            return self._answer(words, kind)
        question = (kind, *words)
        with self._lock:
            comes = self._kept.get(question)
            asks = comes is None
            if asks:
                comes = self._kept[question] = Future()
            self._kept.move_to_end(question)
            if len(self._kept) > MOST_KEPT:
                self._kept.popitem(last=False)
        if not asks:
            return comes.result()
        try:
            comes.set_result(self._answer(words, kind))
        except BaseException as problem:  # so that no request waits forever
            comes.set_exception(problem)
        if comes.exception() or comes.result()[2]:
            with self._lock:
                self._kept.pop(question, None)
        return comes.result()

    def _answer(self, words, kind):
        if words[0] in ("models", "platforms"):
            words = [*words, "--json"] if kind == "json" else words
        else:
            words = [words[0], f"--format={kind}", *words[1:]]
        is_long = words[0] in LONG
        if not self._processors.take(is_long):
            raise Refused(503, "busy: ask again")
        began = time.monotonic()
        try:
            return _stepcast.run(words, False, None, [str(root) for root in self.roots], MOST_SECONDS)[:3]
        finally:
            self._processors.give_back(is_long, time.monotonic() - began)

    def sweep_folders(self):
        """Folders of sweeps that were given, or are in one that was."""
        given = self.roots[:-1]
        return [place for root in given for place in [root, *sorted(root.glob("*/"))] if (place / "sweep.json").is_file()]

    def sweep(self, folder):
        """The rows of a sweep: names of columns, and a list for each point."""
        self._check_place(os.path.join(folder, "sweep.json"))
        files = sorted(Path(folder).glob("shard-*.jsonl"))
        for file in files:
            self._check_place(str(file))
        if not folder or not files:
            raise Refused(422, f"{folder[:80]}: found no rows, expected the folder of `stepcast sweep SPEC -o FOLDER`")
        if sum(file.stat().st_size for file in files) > MOST_SWEEP_BYTES:
            raise Refused(413, f"{folder[:80]}: expected at most {MOST_SWEEP_BYTES >> 20} MiB of rows")
        columns, points, jobs = {}, {}, {}
        for file in files:
            for line in file.read_bytes().split(b"\n"):
                if not line.endswith(b"}"):
                    continue  # a row that is being written
                try:
                    row = json.loads(line)
                    point = row.pop("point", {})
                    flat = {**point, **row}
                    job = {**point, "zone": point["zones"].split(), "zones": None} if "zones" in point else point
                    jobs[row.get("id")] = _words([str(row.get("mode", "predict"))], [], job)
                except (ValueError, TypeError, AttributeError, RecursionError):
                    raise Refused(422, f"{file.name}: found `{line[:40].decode(errors='replace')}`, expected a row of a sweep") from None
                points[row.get("id")] = {name: value if not isinstance(value, (dict, list)) else json.dumps(value)
                                         for name, value in flat.items() if name not in ("id", "mode", "version", "notes")}
        for row in points.values():
            columns.update({name: None for name, value in row.items() if value is not None})
        return {"columns": list(columns), "rows": [[row.get(name) for name in columns] for row in points.values()],
                "jobs": list(jobs.values())}

    def files(self):
        """Files and folders in the folders that were given: path, name, and bytes (None for a folder). At most MOST_LISTED."""
        found = []
        for root in self.roots[:-1]:
            inside = itertools.chain(root.glob("[!.]*"), root.glob("[!.]*/[!.]*"))
            for place in [root, *itertools.islice(inside, MOST_LISTED - len(found))]:
                with contextlib.suppress(Refused, OSError):  # a link that leads elsewhere, or a file that was deleted
                    self._check_place(str(place))
                    found.append({"path": str(place), "name": str(place.relative_to(root.parent)),
                                  "bytes": None if place.is_dir() else place.stat().st_size})
        return sorted(found[:MOST_LISTED], key=lambda file: file["name"])

    def take(self, name, size, read, group=""):
        """Stores a file that was dropped on the page and returns its path. Files with the same group are in one folder."""
        if not re.fullmatch("[A-Za-z0-9]{0,64}", group):
            raise Refused(400, "group: expected at most 64 letters and digits")
        with self._lock:
            if size < 0 or self._uploaded_bytes + size > MOST_UPLOAD_BYTES:
                raise Refused(413, f"files: expected at most {MOST_UPLOAD_BYTES >> 20} MiB together")
            self._uploaded_bytes += size
        plain = re.sub(r"[^A-Za-z0-9._-]", "_", os.path.basename(name))[-80:].lstrip(".-") or "file"
        folder, left = self.uploads / f"group-{group}" if group else Path(tempfile.mkdtemp(dir=self.uploads)), size
        folder.mkdir(exist_ok=True)
        place = folder / plain
        try:
            with open(place, "xb") as out:
                while left > 0 and (piece := read(min(left, 1 << 20))):
                    out.write(piece)
                    left -= len(piece)
            if left > 0:  # the browser gave up
                raise Refused(400, f"{plain}: found {size - left} of {size} bytes")
        except FileExistsError:
            self._forget(size)
            raise Refused(400, f"{plain}: given twice") from None
        except BaseException:
            self._forget(size, place)
            raise
        return str(place)

    def remove(self, path):
        """Deletes an uploaded file."""
        place = Path(path) if isinstance(path, str) and "\0" not in path else self.uploads
        if place.parent.parent != self.uploads or ".." in place.parts or not os.path.isfile(place):
            raise Refused(404, "no uploaded file has this path")
        self._forget(place.stat().st_size, place)

    def _forget(self, size, place=None):
        with self._lock:
            self._uploaded_bytes -= size
        if place:
            place.unlink(missing_ok=True)
            with contextlib.suppress(OSError):  # other files of the group stay
                place.parent.rmdir()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version = "stepcast"
    sys_version = ""
    timeout = MOST_SILENCE_SECONDS
    disable_nagle_algorithm = True  # the end of an answer would wait for the browser to confirm its begin
    wbufsize = 1 << 16

    def do_GET(self):
        self._answer({"/": self._page, "/frame": self._frame, "/page": self._report, "/sweep": self._sweep_page,
                      "/api/sweep": self._sweep, "/api/files": self._files})

    def do_POST(self):
        self._answer({"/api/run": self._run, "/api/upload": self._upload, "/api/remove": self._remove})

    def _answer(self, routes):
        try:
            url = urlsplit(self.path)
            self.asked = {key: values[-1] for key, values in parse_qs(url.query, max_num_fields=16).items()}
            self._check_source()
            route = routes.get(url.path)
            if route is None:
                raise Refused(404, "there is nothing at this address")
            route()
        except Refused as problem:
            self.close_connection = True  # the rest of the body was not read
            self._send(problem.status, {"error": str(problem)})
        except (ConnectionError, TimeoutError):
            self.close_connection = True
        except (ValueError, UnicodeError, RecursionError):
            self.close_connection = True
            self._send(400, {"error": "the request cannot be read"})

    def _check_source(self):
        # Another site's page in the same browser has another Origin; a name that leads here has another Host.
        here = self.server.names
        if self.headers.get("Host", "").lower() not in here:
            raise Refused(403, "another Host than this server's")
        origin = self.headers.get("Origin")
        if origin is not None and origin.lower() not in {f"http://{name}" for name in here}:
            raise Refused(403, "asked from another site")
        token = self.headers.get("X-Stepcast-Token") or self.asked.get("token", "")
        if not hmac.compare_digest(token.encode(), self.server.token.encode()):
            raise Refused(403, "no token, or another: open the address that `stepcast serve` printed")

    def _size(self, most):
        text = self.headers.get("Content-Length", "")
        if not text.isdigit() or len(text) > 12:
            raise Refused(411, "Content-Length: expected the bytes of the request")
        if int(text) > most:
            raise Refused(413, f"found {text} bytes, expected at most {most}")
        return int(text)

    def _page(self):
        links = "".join(f'<a href="/sweep?{html.escape(urlencode({"token": self.server.token, "folder": str(place)}))}">'
                        f"sweep {html.escape(place.name)}</a> " for place in self.server.questions.sweep_folders())
        page = self.server.page.replace("<!--sweeps-->", links).replace("{/*options*/}", self.server.options)
        self._send(200, page, "text/html", policy_of(page))

    def _frame(self):
        # The frame for answers. They contain their script and styles, and load nothing.
        self._send(200, '<!DOCTYPE html><html lang="en"><title>answer</title></html>', "text/html",
                   "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; "
                   "form-action 'none'; frame-ancestors 'self'")

    def _sweep_page(self):
        self._send(200, self.server.sweep_page, "text/html", policy_of(self.server.sweep_page))

    def _sweep(self):
        self._send(200, self.server.questions.sweep(self.asked.get("folder", "")))

    def _files(self):
        self._send(200, {"files": self.server.questions.files()})

    def _report(self):
        words = json.loads(self.asked.get("words", "null"))
        code, output, error = self.server.questions.ask(words, "html")
        if error:
            self._send(422, {"error": error, "code": code})
        else:
            self._send(200, output, "text/html")

    def _run(self):
        asked = json.loads(self.rfile.read(self._size(4 * MOST_CHARACTERS)))
        if not isinstance(asked, dict):
            raise Refused(400, "found no object, expected {\"words\": [...]}")
        kind = asked.get("format", "json")
        code, output, error = self.server.questions.ask(asked.get("words"), kind)
        if error:
            self._send(422, {"error": error, "code": code})
        elif kind == "json":
            self._send(200, output.encode())
        else:
            self._send(200, output, "text/plain")

    def _upload(self):
        size = self._size(MOST_UPLOAD_BYTES)
        path = self.server.questions.take(self.asked.get("name", ""), size, self.rfile.read, self.asked.get("group", ""))
        self._send(200, {"path": path, "folder": os.path.dirname(path)})

    def _remove(self):
        asked = json.loads(self.rfile.read(self._size(MOST_CHARACTERS)))
        self.server.questions.remove(asked.get("path") if isinstance(asked, dict) else None)
        self._send(200, {})

    def _send(self, status, body, kind="application/json", policy=None):
        if isinstance(body, dict):
            body = json.dumps(body)
        data = body if isinstance(body, bytes) else body.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind + "; charset=utf-8")
        self.send_header("Content-Length", str(len(data)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Referrer-Policy", "no-referrer")
        if policy:
            self.send_header("Content-Security-Policy", policy)
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format, *values):
        """Nothing: addresses hold the token."""


def policy_of(page):
    """What a browser may do with the page: run its own script, and ask this server."""
    script = re.search("<script>(.*)</script>", page, re.DOTALL).group(1)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return (f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; connect-src 'self'; "
            "frame-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")


def addresses_at(host):
    """Names under which others reach a server that listens at `host`; those of this machine for all of its addresses."""
    if host not in ("0.0.0.0", ""):
        return [host]
    found = {"127.0.0.1": None}
    try:
        found.update((entry[4][0], None) for entry in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET))
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.connect(("192.0.2.1", 9))  # nothing is sent: the address of the interface that would be used
            found[probe.getsockname()[0]] = None
    except OSError:
        pass  # a machine without a network
    return list(found)


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256

    def __init__(self, host, port, folders):
        self.questions = Questions(folders)  # first: server_close(), also after a failure to bind, closes it
        super().__init__((host, port), Handler)
        self.token = secrets.token_urlsafe(16)
        port = self.server_address[1]
        addresses = addresses_at(host)
        self.names = {f"{name}:{port}" for name in {*map(str.lower, addresses), "127.0.0.1", "localhost"}}
        self.address = "\n".join(f"http://{name}:{port}/?token={self.token}" for name in addresses)
        self.page, self.sweep_page = ((Path(__file__).parent / name).read_text(encoding="utf-8") for name in ("serve.html", "serve_sweep.html"))

    @functools.cached_property
    def options(self):
        return json.dumps(self.questions.options()).replace("<", "\\u003c")

    def handle_error(self, request, client_address):
        if not isinstance(sys.exc_info()[1], (ConnectionError, TimeoutError)):
            super().handle_error(request, client_address)

    def server_close(self):
        super().server_close()
        self.questions.close()


def main(words=None):
    parser = argparse.ArgumentParser(prog="stepcast serve", description=__doc__.partition("\n")[0])
    parser.add_argument("folders", nargs="*", metavar="FOLDER", help="files in it may be asked about: traces, configs, platforms")
    parser.add_argument("--port", type=int, default=8321, help="default: 8321; 0 takes a free one")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen at; default: this machine alone")
    options = parser.parse_args(words)
    try:
        if not 0 <= options.port < 65536:
            raise OSError(0, f"found {options.port}, expected 0 to 65535", "--port")
        server = Server(options.host, options.port, options.folders)
    except OSError as problem:
        place = problem.filename or f"{options.host}:{options.port}"
        print(f"stepcast: error: {place}: {problem.strerror}", file=sys.stderr)
        return 2
    print(f"{server.address}\nCtrl-C ends it.", flush=True)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends it as Ctrl-C does
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        pass
    finally:
        server.server_close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
