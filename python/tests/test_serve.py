"""`stepcast serve`: answers are those of the command line; what must not be asked is refused in one sentence."""

import concurrent.futures
import contextlib
import itertools
import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

import fuzz_serve
from stepcast import serve

from conftest import PROGRAM, ROOT, in_browser

JOB = ["predict", "--model", "llama-3-8b", "--platform", "dgx-h100", "--gpus", "8", "--gbs", "64"]


@pytest.fixture
def server(tmp_path):
    (tmp_path / "given").mkdir()
    (tmp_path / "secret").write_text("secret")
    one = serve.Server("127.0.0.1", 0, [tmp_path / "given", ROOT / "examples"])
    threading.Thread(target=one.serve_forever, daemon=True).start()
    yield one
    one.shutdown()
    one.server_close()


def ask(server, path, body=None, **headers):
    """Status and body."""
    given = {"X-Stepcast-Token": server.token, **{name.replace("_", "-"): value for name, value in headers.items()}}
    data = json.dumps(body).encode() if isinstance(body, (dict, list)) else body
    request = urllib.request.Request(f"http://127.0.0.1:{server.server_address[1]}{path}", data, given)
    try:
        with urllib.request.urlopen(request, timeout=300) as reply:
            return reply.status, reply.read()
    except urllib.error.HTTPError as refused:
        return refused.code, refused.read()


def run(server, words, **more):
    status, body = ask(server, "/api/run", {"words": words, **more})
    return status, json.loads(body) if status != 200 or more.get("format", "json") == "json" else body.decode()


def test_answers_are_those_of_the_command_line(server, cli, traces):
    assert run(server, JOB) == (200, cli(*JOB, "--json", "--advice=off"))
    assert run(server, [*JOB, "--advice=on"]) == (200, cli(*JOB, "--json"))
    assert run(server, ["replay", str(traces)])[1]["step_time_ms"] == cli("replay", traces, "--json")["step_time_ms"]
    assert run(server, ["models"])[1]["models"] == cli("models", "--json")["models"]
    status, error = run(server, ["predict", "--model", "no-such", "--gpus", "8"])
    assert (status, error["code"]) == (422, 2) and error["error"] == cli("predict", "--model", "no-such", "--gpus", "8")


def test_pages_hold_the_same_answer(server, cli):
    words = urllib.request.quote(json.dumps(JOB))
    status, page = ask(server, f"/page?words={words}")
    inside = page.decode().split('id="stepcast-json">')[1].split("</script>")[0]
    assert status == 200 and json.loads(inside) == cli(*JOB, "--json", "--advice=off")
    assert run(server, JOB, format="md")[1].startswith("## ")
    trace = str(ROOT / "examples" / "dlrm_4gpu" / "kineto_rank0.json.gz")
    page = run(server, ["inspect", trace], format="html")[1]
    inside = page.split('id="stepcast-json">')[1].split("</script>")[0]
    assert json.loads(inside) == cli("inspect", trace, "--json") and "Usable: yes, for replay." in page
    status, shell = ask(server, "/")
    assert status == 200 and b"<!DOCTYPE html>" in shell


@pytest.mark.parametrize("headers", [{"X_Stepcast_Token": "wrong"}, {"X_Stepcast_Token": ""}, {"Host": "evil.example:80"},
                                     {"Origin": "http://evil.example"}, {"X_Stepcast_Token": "\u00e9"}])
def test_others_are_refused(server, headers):
    for path, body in (("/", None), ("/page?words=%5B%22models%22%5D", None), ("/api/run", {"words": ["models"]}),
                       ("/api/upload?name=x", b"x")):
        assert ask(server, path, body, **headers)[0] == 403


def test_reads_only_what_was_given_and_writes_nothing(server, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    secret, given = str(tmp_path / "secret"), tmp_path / "given"
    (given / "link").symlink_to(tmp_path)
    for words in (["predict", "--model", secret], ["predict", f"--model={secret}"], ["replay", "../../../../etc"], ["replay", "/"],
                  ["replay", f"{given}/../secret"], ["inspect", f"{given}/link/secret"], ["predict", "--platform", f"x,{secret}"],
                  ["inspect", ".."], ["predict", "--config", "/dev/zero"], ["inspect", "secret"], ["inspect", "./secret"],
                  ["inspect", "given/../secret"]):
        status, problem = run(server, words)
        assert status == 403 and "not in a folder" in problem["error"], words
    out = given / "out"
    for words in ([*JOB, "--report", str(out)], [*JOB, f"--timeline={out}"]):
        assert run(server, words)[1]["error"].endswith("files are not written here"), words
    assert not out.exists() and sorted(os.listdir(given)) == ["link"]


@pytest.mark.parametrize("verb", serve.VERBS)
def test_no_flag_of_a_verb_writes_a_file(server, verb, tmp_path, monkeypatch):
    place = tmp_path / "given" / "work"
    place.mkdir()
    monkeypatch.chdir(place)
    traces = str(ROOT / "examples" / "dlrm_4gpu")
    asked = {"predict": [JOB, ["predict", "--trace", traces], ["predict", "--model", "dlrm-mlperf-v1", "--gpus", "8"]],
             "plan": [["plan", "--model", "llama-3-8b", "--platform", "dgx-h100", "--gpus", "8", "--gbs", "64"]],
             "shard": [["shard", "--model", "dlrm-mlperf-v1", "--gpus", "8", "--evaluations", "10"]],
             "replay": [["replay", traces]], "inspect": [["inspect", traces]]}
    help_text = subprocess.run([PROGRAM, verb, "--help-all"], capture_output=True, text=True).stdout
    help_text = help_text or subprocess.run([PROGRAM, verb, "--help"], capture_output=True, text=True).stdout
    flags = sorted(set(re.findall(r"(?<![\w-])--?[a-z][\w-]*", help_text)) - {"--help", "--help-all"})
    assert "--json" in flags or verb == "compare"
    for words in asked.get(verb, [[verb]]):
        for flag in flags:
            for value in ([str(place / "out")], [str(place / "out.json.gz")], []):
                with contextlib.suppress(serve.Refused):
                    server.questions.ask([*words, flag, *value], "text")
    assert not any(place.rglob("*")), sorted(place.rglob("*"))


def test_a_broken_upload_leaves_nothing(server):
    pieces = iter([b"abc", b""])
    with pytest.raises(serve.Refused, match="found 3 of 9 bytes"):
        server.questions.take("trace.json", 9, lambda n: next(pieces))
    assert not any(server.questions.uploads.rglob("*")) and server.questions._uploaded_bytes == 0


def test_starts_and_ends_in_one_line(tmp_path):
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        for words in (["--port", str(taken.getsockname()[1])], ["--host", "no.such.host.invalid"], [str(tmp_path / "gone")]):
            done = subprocess.run([sys.executable, "-m", "stepcast", "serve", *words], capture_output=True, text=True, env=environment, timeout=60)
            assert done.returncode == 2 and done.stderr.count("\n") == 1, done.stderr
            assert done.stderr.startswith("stepcast: error: ") and not any(tmp_path.iterdir())
    with subprocess.Popen([sys.executable, "-m", "stepcast", "serve", "--port", "0", "--host", "0.0.0.0"], stdout=subprocess.PIPE, text=True, env=environment) as running:
        addresses = list(itertools.takewhile(lambda line: line != "Ctrl-C ends it.\n", running.stdout))
        assert any("127.0.0.1" in line for line in addresses) and not any("0.0.0.0" in line for line in addresses)
        with urllib.request.urlopen(addresses[0].strip(), timeout=60) as page:
            assert page.status == 200
        running.send_signal(signal.SIGTERM)
        assert running.wait(60) == 0 and not any(tmp_path.iterdir())


def test_files_that_files_name_are_read_where_they_may_be(server, tmp_path):
    given = tmp_path / "given"
    for place in (tmp_path, given):
        (place / "layers.sh").write_text("LAYERS=2\n")
        (place / "base.json").write_text('{"stepcast_platform": 1, "name": "base", "extends": "dgx-h100"}')
    script, platform = given / "run.sh", given / "own.json"
    for place, statuses in ((given, {200}), (tmp_path, {422})):
        script.write_text(f"source {place}/layers.sh\npython pretrain_gpt.py --num-layers $LAYERS --hidden-size 1024 --num-attention-heads 16 "
                          "--seq-length 1024 --max-position-embeddings 1024 --vocab-size 32000 --micro-batch-size 1\n")
        platform.write_text(json.dumps({"stepcast_platform": 1, "name": "own", "extends": f"{place}/base.json"}))
        replies = [run(server, ["predict", "--command-line", str(script), "--gpus", "8"]),
                   run(server, [*JOB[:3], "--platform", str(platform), *JOB[5:]])]
        assert {status for status, _ in replies} == statuses, replies


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"null", b"{}", b'{"words": 3}', b'{"words": []}', b'{"words": [3]}',
                                  b'{"words": ["sweep", "x"]}', b'{"words": ["calibrate"]}', b'{"words": ["predict", "\\u0000"]}',
                                  b'{"words": ["models"], "format": "exe"}', b'{"words": ' + b"[" * 60000, b"\xff\xfe"])
def test_broken_requests_are_one_sentence(server, body):
    status, reply = ask(server, "/api/run", body)
    assert 400 <= status < 500 and set(json.loads(reply)) >= {"error"} and b"Traceback" not in reply


def test_damaged_requests_never_break_it(tmp_path, monkeypatch):
    """4,000 requests with bytes changed, cut or doubled: what fuzz_serve.py does where there is no libFuzzer."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(serve._stepcast, "run", None)
    target, chance = fuzz_serve.Target(str(tmp_path)), random.Random(7)
    whole = fuzz_serve.seeds(target.given)
    for number in range(4000):
        damaged = bytearray(whole[number % len(whole)])
        for _ in range(chance.randint(0, 4)):
            at = chance.randrange(len(damaged))
            damaged[at : at + chance.randint(0, 9)] = chance.choice([bytes([chance.randrange(256)]), b"", damaged[at : at + 20]])
        target.one(bytes(damaged))
    target.server.questions.close()
    with pytest.raises(AssertionError, match="would read"):
        target.run(["inspect", "secret"])


def test_sizes_are_bounded(server):
    assert ask(server, "/api/run", b"x" * (5 * serve.MOST_CHARACTERS))[0] == 413
    assert run(server, ["predict", *["--x"] * 300])[0] == 413
    assert ask(server, "/api/upload?name=x", None)[0] == 404  # a GET
    with socket.create_connection(server.server_address) as plain:
        plain.sendall(f"POST /api/upload HTTP/1.1\r\nHost: 127.0.0.1:{server.server_address[1]}\r\nX-Stepcast-Token: {server.token}\r\n"
                      f"Content-Length: 99999999999\r\n\r\n".encode())
        assert b" 413 " in plain.recv(4096)


def test_takes_files(server, traces):
    log = (ROOT / "tests" / "golden" / "logs" / "train.log").read_bytes()
    status, reply = ask(server, "/api/upload?name=..%2F..%2Fmy%20train.log", log)
    path = json.loads(reply)["path"]
    assert status == 200 and Path(path).read_bytes() == log and Path(path).name == "my_train.log"
    assert run(server, ["predict", "--from-log", path])[0] == 200
    uploads = server.questions.uploads
    server.questions.close()
    assert not uploads.exists()


def test_files_of_a_group_are_one_folder(server, traces):
    """Ranks that are uploaded one by one give the step of the job; each can be removed, and its bytes count no more."""
    paths = []
    for file in sorted(traces.glob("*.gz")):
        status, reply = ask(server, f"/api/upload?group=a1&name={file.name}", file.read_bytes())
        assert status == 200 and Path(json.loads(reply)["path"]).parent == Path(json.loads(reply)["folder"])
        paths.append(json.loads(reply)["path"])
    assert len({Path(path).parent for path in paths}) == 1
    alone = json.loads(ask(server, f"/api/upload?name={Path(paths[0]).name}", Path(paths[0]).read_bytes())[1])["path"]
    assert run(server, ["replay", str(Path(paths[0]).parent)])[1]["step_time_ms"] == run(server, ["replay", str(traces)])[1]["step_time_ms"]
    assert ask(server, f"/api/upload?group=a1&name={Path(paths[0]).name}", b"x")[0] == 400  # given twice
    assert ask(server, "/api/upload?group=..%2F..&name=x", b"x")[0] == 400
    for path in ("", "/etc/passwd", str(traces), str(server.questions.uploads), f"{Path(paths[0]).parent}/../../x", None, 3, "a\0b"):
        assert ask(server, "/api/remove", {"path": path})[0] == 404, path
    for path in [*paths, alone]:
        assert ask(server, "/api/remove", {"path": path})[0] == 200
    assert server.questions._uploaded_bytes == 0 and not any(server.questions.uploads.iterdir())


def test_lists_the_files_of_the_given_folders(server, tmp_path):
    given = tmp_path / "given"
    (given / "inside").mkdir()
    for name in ("step.json", "inside/train.log", ".hidden"):
        (given / name).write_text("abc")
    (given / "link").symlink_to(tmp_path / "secret")
    files = {file["name"]: file["bytes"] for file in json.loads(ask(server, "/api/files")[1])["files"]}
    assert {name: size for name, size in files.items() if name.startswith("given")} == {
        "given": None, "given/inside": None, "given/inside/train.log": 3, "given/step.json": 3}
    assert "examples/dlrm_4gpu" in files and len(files) <= serve.MOST_LISTED
    assert ask(server, "/api/files", X_Stepcast_Token="wrong")[0] == 403


def test_controls_are_those_of_the_program(server, cli):
    """Flags, kinds and allowed values come from --help-all; the program accepts every value."""
    page = (Path(serve.__file__).parent / "serve.html").read_text()
    flags = list(dict.fromkeys(re.findall(r"\['(--[a-z]+)', '", page)))
    options = server.questions.options()
    assert set(options) == set(serve.VERBS) and len(flags) == 16
    for flag in flags:
        for verb in ("predict", "plan"):
            option = next(one for one in options[verb] if flag in one["names"])
            assert option["names"][0] == flag and option["value"]
    allowed = {flag: next(one["allowed"] for one in options["predict"] if flag in one["names"]) for flag in flags}
    assert {flag for flag in flags if allowed[flag]} == {"--dtype", "--framework", "--sharding", "--recompute", "--sp"}
    for flag, values in allowed.items():
        for value in values:
            answer = cli(*JOB, "--tp", "1", "--pp", "1", "--mbs", "1", flag, value, "--json")
            assert isinstance(answer, dict) or "expected one of" not in answer, (flag, value, answer)
    assert not next(one for one in options["predict"] if one["names"] == ["--text-only"])["value"]


def test_two_hundred_at_once_are_answered_or_refused(server):
    """100 forecasts, 50 plans, 30 that are malformed and 20 that read and write slowly."""
    statuses, lock = [], threading.Lock()

    def one(number):
        if number < 100:
            status = run(server, [*JOB[:-1], str(64 + 8 * number)])[0]
        elif number < 150:
            status = run(server, ["plan", "--model", "llama-3-8b", "--platform", "dgx-h100", "--gpus", "16", "--gbs", "64"])[0]
        elif number < 180:
            status = ask(server, "/api/run", b"{" * number)[0]
        else:
            with socket.create_connection(server.server_address) as plain:
                plain.sendall(b"GET / HTTP/1.1\r\nHost:")  # and no more
                plain.settimeout(60 * serve.MOST_SILENCE_SECONDS)
                status = len(plain.recv(1)) or 408
        with lock:
            statuses.append(status)

    threads = [threading.Thread(target=one, args=(number,)) for number in range(200)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(statuses) == 200 and set(statuses) <= {200, 400, 408, 503} and statuses.count(200) >= 1
    assert run(server, JOB)[0] == 200


def test_short_questions_go_first(monkeypatch):
    processors, order, lock = serve.Processors(1), [], threading.Lock()
    assert processors.take(False) and not processors.take(False)
    monkeypatch.setattr(serve, "MOST_BUSY_SECONDS", 1000)

    def one(name, is_long):
        assert processors.take(is_long)
        with lock:
            order.append(name)
        processors.give_back(is_long, 0.01)

    threads = [threading.Thread(target=one, args=(name, name.startswith("plan"))) for name in ("plan a", "plan b", "predict a", "predict b")]
    for number, thread in enumerate(threads):
        thread.start()
        while len(processors._waiting) <= number:
            time.sleep(0.001)
    processors.give_back(False, 0.01)
    for thread in threads:
        thread.join()
    assert order == ["predict a", "predict b", "plan a", "plan b"]


def test_who_would_be_answered_too_late_is_refused_early(monkeypatch):
    """The longer answers take, the less a question waits; a minute-long one does not end all waiting."""
    waited = []

    def waits(is_long):
        waited.clear()
        assert not processors.take(is_long)
        return sum(waited)

    processors = serve.Processors(1)
    monkeypatch.setattr(processors._changed, "wait", waited.append)  # and nothing becomes free
    assert processors.take(True)
    at_first = waits(True)
    assert at_first + 0.3 <= serve.MOST_BUSY_SECONDS
    processors.give_back(True, 0.9)
    assert processors.take(True)
    assert waits(True) < at_first - 0.3 and waits(False) > at_first


def test_answers_are_kept_where_no_file_is_part_of_them(server, monkeypatch):
    calls, run_verb = [], serve._stepcast.run
    monkeypatch.setattr(serve._stepcast, "run", lambda *given, **more: calls.append(given[0]) or run_verb(*given, **more))
    first, config = run(server, JOB), server.questions.roots[0] / "config.json"
    assert first == run(server, JOB) and len(calls) == 1
    with concurrent.futures.ThreadPoolExecutor(8) as pool:  # who asks the same meanwhile waits for the same answer
        assert len({str(said) for said in pool.map(lambda _: run(server, ["plan", *JOB[1:]]), range(8))}) == 1
    assert len(calls) == 2
    counts = set()
    for layers in (2, 4):  # a file that changes is read again
        config.write_text(json.dumps({"model_type": "llama", "hidden_size": 1024, "num_hidden_layers": layers, "num_attention_heads": 16,
                                      "intermediate_size": 2816, "vocab_size": 32000, "max_position_embeddings": 4096}))
        status, answer = run(server, ["predict", "--model", str(config), "--gpus", "8", "--gbs", "64"])
        assert status == 200
        counts.add(answer["parameters"])
    assert len(counts) == 2
    for number in range(serve.MOST_KEPT + 8):
        run(server, ["models", f"llama-3-{number}b"])
        assert len(server.questions._kept) <= serve.MOST_KEPT
    run(server, ["predict", "--model", "no-such", "--gpus", "8"])
    assert not any("no-such" in question for question in server.questions._kept)


def test_takes_too_long(server, monkeypatch):
    monkeypatch.setattr(serve, "MOST_SECONDS", 0)
    status, reply = run(server, ["plan", "--model", "llama-3.1-405b", "--platform", "dgx-h100", "--gpus", "2048"])
    assert status == 422 and "took longer than 0 s" in reply["error"]


def test_the_page_in_a_browser(server, cli, tmp_path):
    """A hundred inputs, each with the step that the command line says."""
    def step(gpus, gbs, mbs, *more):
        return cli("predict", "--model", "llama-3-8b", "--platform", "dgx-h100", "--gpus", gpus, "--gbs", gbs, "--mbs", mbs, "--json",
                   *more)["step_time_ms"]

    fields = [[{"gpus": str(gpus), "gbs": str(gbs), "mbs": str(mbs)}, step(gpus, gbs, mbs)]
              for gpus in (8, 16, 32, 64) for gbs in (64, 128, 256, 512) for mbs in (1, 2) if gbs % (gpus * mbs) == 0]
    last = fields[-1][0]
    job = (last["gpus"], last["gbs"], last["mbs"])
    factors = {}
    sliders = []
    for number in range(98 - len(fields)):
        part, exponent = ("network", "compute", "memory_bound")[number % 3], -1 + 0.25 * (number // 3 % 12)
        if exponent == 0:
            factors.pop(part, None)
        else:
            factors[part] = float(f"{2**exponent:.4g}")
        sliders.append([part, exponent, step(*job, *(f"--what-if={name}={factor:.6g}x" for name, factor in factors.items()))])
    faster = [f"--what-if={name}={factor:.6g}x" for name, factor in factors.items()]
    keys = [["gpus", "ArrowDown", step("32", *job[1:], *faster)], ["mbs", "ArrowDown", step("32", job[1], "1", *faster)]]
    (tmp_path / "expected.json").write_text(json.dumps({"fields": fields, "sliders": sliders, "keys": keys}))
    in_browser("serve_in_browser.mjs", server.address, tmp_path / "expected.json")


def test_the_page_is_used_in_a_browser(tmp_path, traces, cli):
    logs = ROOT / "tests" / "golden" / "logs"
    (tmp_path / "expected.json").write_text(json.dumps({
        "traces": [str(file) for file in sorted(traces.glob("*.gz"))], "folder": str(traces), "log": str(logs / "train.log"),
        "replay": cli("replay", traces, "--json")["step_time_ms"], "list": traces.name}))
    server = serve.Server("127.0.0.1", 0, [traces.parent, logs])
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        in_browser("use_serve_in_browser.mjs", server.address, tmp_path / "expected.json")
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture
def swept(tmp_path):
    """A folder of 10,000 made points, in one that the server was given."""
    folder = tmp_path / "given" / "points"
    folder.mkdir()
    (folder / "sweep.json").write_text("{}")
    rows = [{"id": str(n), "mode": "predict", "version": "0",
             "point": {"model": f"model-{n % 4}", "platform": "dgx-h100", "gpus": 8 << n % 5, "mbs": 1 + n % 3},
             "error": None, "step_time_ms": (n * 7919 % 10000) + 0.5, "mfu": 0.4, "notes": ["x"]} for n in range(10000)]
    lines = [json.dumps(row) for row in rows]
    (folder / "shard-0000-of-0002.jsonl").write_text("\n".join(lines[:6000]) + "\n" + lines[7000])
    (folder / "shard-0001-of-0002.jsonl").write_text("\n".join(lines[6000:]) + '\n{"id": "being writ')
    return folder, rows


def test_sweeps_are_tables(server, swept, tmp_path):
    folder, rows = swept
    status, body = ask(server, f"/api/sweep?folder={folder}")
    found = json.loads(body)
    assert status == 200 and len(found["rows"]) == 10000
    assert set(found["columns"]) == {"model", "platform", "gpus", "mbs", "step_time_ms", "mfu"}
    assert found["jobs"][0] == ["predict", "--model=model-0", "--platform=dgx-h100", "--gpus=8", "--mbs=1"]
    steps = [row[found["columns"].index("step_time_ms")] for row in found["rows"]]
    assert sorted(steps) == sorted(row["step_time_ms"] for row in rows)
    status, page = ask(server, "/")
    assert status == 200 and b">sweep points</a>" in page
    for place, code in ((tmp_path, 403), ("", 422), ("../..", 403), (ROOT / "examples", 422)):
        assert ask(server, f"/api/sweep?folder={place}")[0] == code
    for damaged in ("[{}\n[1}", '{"point": 3}', '{"id": }', "[" * 100000 + "}"):
        (folder / "shard-0003-of-0002.jsonl").write_text(damaged)
        status, body = ask(server, f"/api/sweep?folder={folder}")
        assert status == 422 and "expected a row of a sweep" in json.loads(body)["error"]
    (folder / "shard-0002-of-0002.jsonl").symlink_to(tmp_path / "secret")
    assert ask(server, f"/api/sweep?folder={folder}")[0] == 403


def test_sweeps_are_filtered_in_a_browser(server, swept):
    folder, rows = swept
    in_browser("filter_in_browser.mjs", f"http://127.0.0.1:{server.server_address[1]}/sweep?token={server.token}&folder={folder}",
               ":10000", "model-1:2500", f"model-1 step_time_ms<5000:{sum(row['point']['model'] == 'model-1' and row['step_time_ms'] < 5000 for row in rows)}",
               f"mbs=2 gpus>16:{sum(row['point']['mbs'] == 2 and row['point']['gpus'] > 16 for row in rows)}", "no-such:0")
