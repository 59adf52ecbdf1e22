"""The workflows of .github/: what they call exists. actionlint reads them as well, where it is installed."""

import json
import re
import shutil
import subprocess

import pytest

from conftest import ROOT

yaml = pytest.importorskip("yaml")
FOLDER = ROOT / ".github" / "workflows"
WORKFLOWS = sorted(FOLDER.glob("*.yml"))
CONTEXTS = {"github", "matrix", "steps", "vars", "strategy", "inputs", "needs", "env", "secrets", "runner"}


def read(file):
    return yaml.safe_load(file.read_text())


def steps(file):
    return [step for job in read(file)["jobs"].values() for step in job.get("steps", [])]


def test_there_is_a_workflow_for_each_purpose():
    assert {file.stem for file in WORKFLOWS} == {"pull-request", "nightly", "wheels", "docs", "release", "compare-action"}


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.stem)
class TestWorkflow:
    def test_jobs_have_least_permissions_and_known_needs(self, file):
        workflow = read(file)
        assert workflow["permissions"] == {"contents": "read"}
        for job in workflow["jobs"].values():
            assert "uses" in job or job["steps"]
            needs = job.get("needs", [])
            assert set([needs] if isinstance(needs, str) else needs) <= workflow["jobs"].keys()

    def test_expressions_name_contexts(self, file):
        text = file.read_text()
        expressions = re.findall(r"\${{(.*?)}}", text)
        assert text.count("${{") == text.count("}}") == len(expressions)
        for expression in expressions:
            for name in re.findall(r"(?<![\w.'-])([a-z]\w*)\.", re.sub(r"'[^']*'", "", expression)):
                assert name in CONTEXTS, expression

    def test_steps_run_what_exists(self, file):
        verbs = re.search(r"\n  (run \| lab .*)\)\n", (ROOT / "dev").read_text()).group(1).split(" | ")
        parts = re.search(r"\n +(release \| sanitize .*)\) parts", (ROOT / "tools" / "dev" / "test.sh").read_text()).group(1).split(" | ")
        for step in steps(file):
            assert ("uses" in step) != ("run" in step)
            if "uses" in step:
                local = step["uses"].startswith("./")
                assert (ROOT / step["uses"] / "action.yml").is_file() if local else re.fullmatch(r"[\w./-]+@[\w./-]+", step["uses"])
            for verb, rest in re.findall(r"\./dev (\w+)(.*)", step.get("run", "")):
                assert verb in verbs
                if verb in ("test", "nightly") and "$" not in rest:
                    assert set(rest.split()) <= set(parts)

    def test_input_of_others_is_no_part_of_a_script(self, file):
        for step in steps(file):
            assert "${{" not in step.get("run", "")


def test_parts_of_the_night_exist():
    matrix = read(FOLDER / "nightly.yml")["jobs"]["nightly"]["strategy"]["matrix"]["part"]
    known = re.search(r"\n +(release \| sanitize .*)\) parts", (ROOT / "tools" / "dev" / "test.sh").read_text()).group(1).split(" | ")
    assert {word for part in matrix for word in part.split()} == set(known) - {"format"}  # which `release` contains


def test_actionlint_finds_nothing():
    if shutil.which("actionlint") is None:
        pytest.skip("no actionlint")
    done = subprocess.run(["actionlint", *WORKFLOWS], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("form", sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml")), ids=lambda form: form.stem)
def test_issue_forms_are_read(form):
    document = read(form)
    if form.stem == "config":
        assert document["blank_issues_enabled"] in (True, False)
        return
    assert document["name"] and document["description"]
    ids = [one["id"] for one in document["body"] if one["type"] != "markdown"]
    assert len(ids) == len(set(ids)) > 2
    assert {one["type"] for one in document["body"]} <= {"markdown", "textarea", "input", "dropdown", "checkboxes"}
    assert "--json" in form.read_text()


def test_wheels_are_built_with_the_listed_libraries():
    parts = json.loads((ROOT / "packaging" / "third_party" / "parts.json").read_text())["parts"]
    fetched = {step["with"]["repository"]: step["with"]["ref"] for step in steps(FOLDER / "wheels.yml") if "repository" in step.get("with", {})}
    assert fetched.keys() == {part["source"] for part in parts if part["source"]}
    for part in parts:
        if part["source"]:
            assert fetched[part["source"]].endswith(part["version"])
            assert f"\nbuild {part['name']}" in (ROOT / "packaging" / "manylinux.sh").read_text()
