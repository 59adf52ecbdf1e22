"""Files around the package: what tells an assistant how to call it, the step of a workflow, the release script."""

import functools
import importlib.metadata
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import textwrap
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

import stepcast
from conftest import ROOT, in_browser
from stepcast._program import PROGRAM

SKILL = (Path(stepcast.__file__).parent / "SKILL.md").read_text()


@pytest.fixture
def path():
    return {**os.environ, "PATH": f"{Path(PROGRAM).parent}:{os.environ['PATH']}"}


def blocks(kind):
    return "\n".join(re.findall(rf"```{kind}\n(.*?)```", SKILL, re.DOTALL))


@pytest.mark.parametrize("line", blocks("sh").splitlines())
def test_commands_for_assistants_answer(line, path):
    done = subprocess.run(line, shell=True, capture_output=True, text=True, check=False, env=path)
    assert done.returncode == 0 and json.loads(done.stdout)["schema"].startswith("stepcast.")


def test_python_for_assistants_answers():
    found = {}
    exec(blocks("python"), found)
    assert found["f"].step_time_p10_ms < found["f"].step_time_ms < found["f"].step_time_p90_ms


@pytest.mark.parametrize(("limit", "code"), [("90%", 0), ("1%", 4)])
def test_the_step_of_a_workflow(tmp_path, path, limit, code):
    step = (ROOT / "packaging" / "action" / "action.yml").read_text().split("run: |\n")[1].split("      env:")[0]
    for name, batch in (("a", 64), ("b", 96)):
        document = stepcast.predict("llama-3-8b", gpus=8, gbs=batch).to_json()
        (tmp_path / f"{name}.json").write_text(document)
    done = subprocess.run(["bash", "-e", "-c", textwrap.dedent(step)], cwd=tmp_path, capture_output=True, text=True, check=False,
                          env={**path, "LIMIT": limit, "BEFORE": "a.json", "AFTER": "b.json", "GITHUB_STEP_SUMMARY": str(tmp_path / "sum")})
    assert done.returncode == code, done.stderr
    assert "%" in (tmp_path / "sum").read_text()


def test_a_release_is_the_same_bytes_twice(tmp_path):
    if not (ROOT / ".git").exists() or shutil.which("git") is None:
        pytest.skip("no checkout")
    made = []
    for name in ("a", "b"):
        done = subprocess.run([sys.executable, ROOT / "packaging" / "release.py", "--out", tmp_path / name], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        made.append({file.name: file.read_bytes() for file in (tmp_path / name).iterdir()})
    assert made[0] == made[1]
    packed = next(text for name, text in made[0].items() if name.endswith(".tar.gz"))
    head = subprocess.run(["git", "-C", ROOT, "rev-parse", "HEAD"], capture_output=True, text=True, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        commit = next(one for one in archive.getmembers() if one.name.endswith("/cmake/commit.txt"))
        assert archive.extractfile(commit).read().decode() == head  # which a build of it says with its version
    bill = json.loads(next(text for name, text in made[0].items() if name.endswith(".spdx.json")))
    assert all(one["supplier"].startswith("Organization: ") for one in bill["packages"])
    assert bill["spdxVersion"] == "SPDX-2.3" and {"fmt", "yaml-cpp", "zlib"} <= {one["name"] for one in bill["packages"]}


def release(*words):
    return subprocess.run([sys.executable, ROOT / "packaging" / "release.py", *words], capture_output=True, text=True, check=False)


def version():
    return re.search(r"project\(stepcast VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text()).group(1)


def test_version_change_log_and_tag_agree():
    assert (release("--check").returncode, release("--check").stderr) == (0, "")
    assert "expected v" + version() in release("--check", "v9.9.9").stderr
    assert "### Added\n" in release("--notes").stdout and "## 0.1.0" not in release("--notes").stdout
    heading = re.search(rf"(?m)^## {re.escape(version())} \((\S+)\)$", (ROOT / "CHANGELOG.md").read_text())
    assert f"date-released: {heading.group(1)}\n" in (ROOT / "CITATION.cff").read_text()
    major, minor, _ = version().split(".")
    assert f"inline namespace v{major}_{minor} {{" in (ROOT / "src" / "stepcast" / "api" / "stepcast.h").read_text()
    if (ROOT / ".git").exists() and shutil.which("git"):
        tags = subprocess.run(["git", "-C", ROOT, "tag", "--points-at", "HEAD"], capture_output=True, text=True, check=True).stdout.split()
        for tag in tags:
            assert release("--check", tag).stderr == ""


def test_licences_and_sbom_are_in_the_wheel():
    """Each library of the SBOM has its licence text beside it, and each marker of a library in parts.json is in the binary."""
    files = {str(file): file for file in importlib.metadata.files("stepcast")}
    bill = json.loads(next(file for name, file in files.items() if name.endswith(".dist-info/sboms/stepcast.spdx.json")).read_text())
    inside = {one["name"]: one for one in bill["packages"]}
    assert inside.pop("stepcast")["versionInfo"] == version() == importlib.metadata.version("stepcast")
    texts = {Path(name).stem: file.read_text() for name, file in files.items() if "/licenses/packaging/third_party/" in name}
    assert texts.keys() == inside.keys() and all("opyright" in text for text in texts.values())
    library = (Path(stepcast.__file__).parent / "libstepcast.so").read_bytes()
    parts = json.loads((ROOT / "packaging" / "third_party" / "parts.json").read_text())["parts"]
    assert {part["name"] for part in parts} == inside.keys()
    for part in parts:
        if part.get("marker"):
            assert part["marker"].encode() in library, part["name"]


def test_metadata_of_the_wheel():
    metadata = importlib.metadata.metadata("stepcast")
    assert metadata["License-Expression"] == "Apache-2.0" and metadata["Author"] == "stepcast maintainers"
    urls = dict(one.split(", ", 1) for one in metadata.get_all("Project-URL"))
    assert urls.keys() == {"Homepage", "Documentation", "Issues", "Changelog"}
    assert len(metadata.get_all("Classifier")) >= 8
    page = metadata.get_payload()
    links = re.findall(r"\]\(([^)]+)\)", page)
    assert len(page.splitlines()) < 60 and len(links) > 5
    for link in links:
        assert link.startswith("https://"), link
        in_repository = re.fullmatch(re.escape(urls["Homepage"]) + r"/(?:blob|raw)/main/(\S+)", link)
        assert in_repository is None or (ROOT / in_repository.group(1)).exists(), link


def test_addresses_are_one_setting(tmp_path):
    """Each address of the repository and of the site is that of CMakeLists.txt, and --rename changes all of them."""
    if not (ROOT / ".git").exists() or shutil.which("git") is None:
        pytest.skip("no checkout")
    subprocess.run(["git", "clone", "-q", "--shared", ROOT, tmp_path / "clone"], check=True)
    clone = tmp_path / "clone"
    done = subprocess.run([sys.executable, clone / "packaging" / "release.py", "--rename", "https://example.org/a/b", "https://example.net/c/"],
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    left = subprocess.run(["git", "-C", clone, "grep", "-IlE", r"stepcast\.github\.io|github\.com/stepcast"], capture_output=True, text=True, check=False)
    assert left.stdout == ""


def test_the_first_page_shows_what_was_recorded(tmp_path, cli):
    done = subprocess.run([sys.executable, ROOT / "packaging" / "record_answers.py", PROGRAM, tmp_path / "recorded.json",
                           "--models", "llama-3-8b", "--platforms", "dgx-h100,8xmi300x"],
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    recorded = json.loads((tmp_path / "recorded.json").read_text())
    steps = {}
    for key, one in recorded["answers"].items():
        steps[key] = one["step_ms"]
        assert one["step_ms"] == cli(*one["command"].split()[1:], "--json")["step_time_ms"]
    assert set(steps) == {f"llama-3-8b/{platform}/{gpus}" for platform in ("dgx-h100", "8xmi300x") for gpus in recorded["gpus"]}
    shutil.copy(ROOT / "docs" / "forecast.js", tmp_path)
    (tmp_path / "index.html").write_text('<!DOCTYPE html><link rel="icon" href="data:,"><div id="forecast"></div><script src="forecast.js"></script>')
    (tmp_path / "expected.json").write_text(json.dumps(steps))
    site = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(SimpleHTTPRequestHandler, directory=tmp_path))
    threading.Thread(target=site.serve_forever, daemon=True).start()
    try:
        in_browser("first_page_in_browser.mjs", f"http://127.0.0.1:{site.server_address[1]}/", tmp_path / "expected.json")
    finally:
        site.shutdown()
        site.server_close()


def test_schemas_are_found_by_their_ids():
    site = re.search("site_url: (\\S+)", (ROOT / "mkdocs.yml").read_text()).group(1)
    schemas = sorted((ROOT / "docs" / "schemas").rglob("*.json"))
    assert len(schemas) > 20
    for schema in schemas:
        document = json.loads(schema.read_text())
        assert document["$id"] == site + schema.relative_to(ROOT / "docs").as_posix()
        for reference in re.findall('"\\$ref": "([^"#]+)', schema.read_text()):
            assert (schema.parent / reference).is_file()


def test_the_debian_package_is_clean():
    build = ROOT / "build" / "release"
    if shutil.which("lintian") is None or not (build / "CPackConfig.cmake").exists():
        pytest.skip("no lintian, or no release build")
    made = subprocess.run(["cmake", "--build", build, "--target", "deb"], capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stdout
    package = next(build.glob("stepcast_*.deb"))
    said = subprocess.run(["lintian", "--allow-root", package], capture_output=True, text=True, check=False)
    assert said.returncode == 0 and said.stdout == ""
    held = subprocess.run(["dpkg", "-c", package], capture_output=True, text=True, check=True).stdout
    for file in ("bin/stepcast", "share/man/man1/stepcast.1.gz", "share/stepcast/platforms/dgx-h100.json",
                 "share/fish/vendor_completions.d/stepcast.fish", "share/doc/stepcast/stepcast.spdx.json"):
        assert f"./usr/{file}\n" in held
    for part in json.loads((ROOT / "packaging" / "third_party" / "parts.json").read_text())["parts"]:
        assert f"./usr/share/doc/stepcast/third_party/{part['name']}.txt\n" in held


def test_the_conda_recipe_reads_the_package():
    """Its versions and requirements are those of the package; conda-build itself is not asked."""
    recipe = (ROOT / "packaging" / "conda" / "meta.yaml").read_text()
    version = re.search(r"project\(stepcast VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text()).group(1)
    assert f'set version = "{version}"' in recipe
    project = (ROOT / "pyproject.toml").read_text()
    assert re.search("scikit-build-core>=([0-9.]+)", project).group(1) in recipe
    assert re.search('requires-python = ">=([0-9.]+)"', project).group(1) in recipe
    text = re.sub(r"(?m)^{%.*%}$", "", recipe).replace("{{ version }}", version)
    yaml = pytest.importorskip("yaml")
    read = yaml.safe_load(re.sub(r"{{.*?}}", "x", text))
    assert read["package"] == {"name": "stepcast", "version": version} and "cli11" in read["requirements"]["host"]


def test_the_image_takes_the_wheel():
    lines = (ROOT / "packaging" / "Containerfile").read_text().splitlines()
    words = [line.split(maxsplit=1) for line in lines if line and not line.startswith("#")]
    assert [word for word, _ in words] == ["FROM", "LABEL", "COPY", "RUN", "USER", "WORKDIR", "ENTRYPOINT", "CMD"]
    pattern = next(rest for word, rest in words if word == "COPY").split()[0]
    assert re.fullmatch(pattern.replace("*", ".*"), "build/dist/stepcast-1.2.3-py3-none-manylinux_2_28_x86_64.whl")
    assert json.loads(dict(words)["ENTRYPOINT"]) == ["stepcast"] and dict(words)["USER"] == "10001"


def test_the_table_of_the_site_names_every_page():
    docs = ROOT / "docs"
    listed = set(re.findall(r"[\w/-]+\.md", (ROOT / "mkdocs.yml").read_text()))
    assert {str(page.relative_to(docs)) for folder in (docs, docs / "reference") for page in folder.glob("*.md")} == listed


def broken_links(page):
    """Links of a Markdown page to files that are missing, and to headings that a page does not have."""
    broken = []
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.S)
    for name, anchor in re.findall(r"\]\(([^)#:\s]*)(?:#([^)\s]*))?\)", text):
        target = page.parent / name if name else page
        if not target.exists():
            broken.append(name)
        elif anchor and target.suffix == ".md":
            headings = re.findall(r"(?m)^#+ (.*)$", re.sub(r"```.*?```", "", target.read_text(), flags=re.S))
            slugs = {re.sub(r"\s+", "-", re.sub(r"[^\w\s-]", "", heading.lower()).strip()) for heading in headings}
            if anchor not in slugs:
                broken.append(f"{name}#{anchor}")
    return broken


def test_links_lead_to_files_and_headings():
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]:
        assert not broken_links(page), page


def test_a_broken_link_is_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# One `two` (3)\n\n[a](gone.md) [b](page.md#one-two-3) [c](#four)\n\n```\n[d](x.md)\n```\n")
    assert broken_links(page) == ["gone.md", "#four"]

