"""Makes the files of a release in build/release-files: source archive, wheels, Debian package, SBOM (SPDX 2.3), SHA256SUMS.

    python3 packaging/release.py [--out DIR] [--wheels DIR]   of the commit that is checked out; `./dev release` builds the rest first
    python3 packaging/release.py --check [v0.2.0]             compares version, change log and copies of the version with the tag
    python3 packaging/release.py --notes                      prints the section of the change log of this version
    python3 packaging/release.py --sbom FILE                  writes the SBOM that goes into each binary package
    python3 packaging/release.py --rename REPOSITORY SITE     changes both addresses in every file; SITE ends in a slash

The same commit gives the same bytes: entries are sorted, their times are the commit's, and nothing of the machine enters.
"""

import argparse
import gzip
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
THIRD_PARTY = ROOT / "packaging" / "third_party"
US = "Organization: stepcast maintainers"
# Files that repeat the version of CMakeLists.txt, and how each writes it.
COPIES = {"CITATION.cff": r"(?m)^version: ([0-9.]+)$", "packaging/conda/meta.yaml": r'set version = "([0-9.]+)"'}


def git(*words):
    return subprocess.run(["git", "-C", ROOT, *words], capture_output=True, check=True).stdout


def version():
    return re.search(r"project\(stepcast VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text()).group(1)


def section(of):
    """The text below `## OF` in the change log, without the heading; None if there is no such section."""
    found = re.search(rf"(?ms)^## {re.escape(of)}\b[^\n]*\n(.*?)(?=^## |\Z)", (ROOT / "CHANGELOG.md").read_text())
    return found and found.group(1).strip() + "\n"


def problems_of(tag):
    """What a release of this checkout lacks, a line each. `tag` may be empty: then nothing was tagged yet."""
    number = version()
    for file, pattern in COPIES.items():
        found = re.search(pattern, (ROOT / file).read_text())
        if found is None or found.group(1) != number:
            yield f"{file}: found version {found and found.group(1)}, expected {number} of CMakeLists.txt"
    if not section(number):
        yield f"CHANGELOG.md: found no section `## {number}`, or an empty one"
    if tag and tag != f"v{number}":
        yield f"tag: found {tag}, expected v{number} of CMakeLists.txt"
    if tag and section("Unreleased"):
        yield f"CHANGELOG.md: found lines under Unreleased, expected them under {number}"


def source_archive(out, seconds):
    """What git has of the commit; packed here, so that it does not depend on the version of git or gzip."""
    base = f"stepcast-{version()}"
    data = io.BytesIO()
    with tarfile.open(fileobj=io.BytesIO(git("archive", "--format=tar", "HEAD"))) as given, \
            tarfile.open(fileobj=data, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for entry in sorted(given.getmembers(), key=lambda one: one.name):
            if entry.isdir() or entry.name.startswith("tests/golden/"):
                continue
            content = given.extractfile(entry) if entry.isfile() else None
            plain = tarfile.TarInfo(f"{base}/{entry.name}")
            plain.mtime, plain.mode, plain.size = seconds, 0o755 if entry.mode & 0o100 else 0o644, entry.size
            plain.type, plain.linkname = entry.type, entry.linkname
            archive.addfile(plain, content)
    file = out / f"{base}.tar.gz"
    with open(file, "wb") as raw, gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=seconds, compresslevel=9) as packed:
        packed.write(data.getvalue())
    return file


def rename(repository, site):
    """Writes other addresses of the repository and of the documentation into every file that has them."""
    old = re.search(r"HOMEPAGE_URL (\S+)", (ROOT / "CMakeLists.txt").read_text()).group(1)
    old_site = re.search(r'STEPCAST_SITE "(\S+)"', (ROOT / "CMakeLists.txt").read_text()).group(1)
    for name in git("ls-files", "-z").decode().split("\0")[:-1]:
        file = ROOT / name
        before = file.read_bytes() if file.is_file() and not file.is_symlink() else b""
        after = before.replace(old_site.encode(), site.encode()).replace(old.encode(), repository.encode())
        if after != before:
            file.write_bytes(after)


def parts():
    """Libraries of others that our binaries contain: {name, licence, package of Debian, version, source, marker}."""
    return json.loads((THIRD_PARTY / "parts.json").read_text())["parts"]


def version_of(part):
    """That of the package which was built with; of parts.json where there is no dpkg."""
    if shutil.which("dpkg-query") is None:
        return part["version"]
    done = subprocess.run(["dpkg-query", "-W", "-f", "${Version}", part["package"]], capture_output=True, text=True, check=False)
    return done.stdout or part["version"]


def commit_seconds():
    if os.environ.get("SOURCE_DATE_EPOCH"):
        return int(os.environ["SOURCE_DATE_EPOCH"])
    try:
        return int(git("log", "-1", "--format=%ct"))
    except (OSError, subprocess.CalledProcessError):
        return 1704067200  # an unpacked source archive, as in python/finish_wheel.py


def sbom(files=()):
    given = [("stepcast", "Apache-2.0", version(), US)]
    given += [(part["name"], part["licence"], version_of(part), "Organization: " + (part["source"].partition("/")[0] or "GNU")) for part in parts()]
    packages = [{"SPDXID": "SPDXRef-" + re.sub("[^A-Za-z0-9.-]", "-", name), "name": name, "versionInfo": of, "supplier": supplier,
                 "downloadLocation": "NOASSERTION", "filesAnalyzed": False, "licenseConcluded": licence, "licenseDeclared": licence,
                 "copyrightText": "NOASSERTION"} for name, licence, of, supplier in given]
    relations = [{"spdxElementId": "SPDXRef-DOCUMENT", "relatedSpdxElement": "SPDXRef-stepcast", "relationshipType": "DESCRIBES"}]
    relations += [{"spdxElementId": "SPDXRef-stepcast", "relatedSpdxElement": one["SPDXID"], "relationshipType": "CONTAINS"}
                  for one in packages[1:]]
    entries = [{"SPDXID": f"SPDXRef-File-{number}", "fileName": f"./{file.name}", "licenseConcluded": "NOASSERTION", "copyrightText": "NOASSERTION",
                "checksums": [{"algorithm": of.upper(), "checksumValue": hashlib.new(of, file.read_bytes()).hexdigest()}
                              for of in ("sha1", "sha256")]} for number, file in enumerate(sorted(files))]
    name = f"stepcast-{version()}"
    if files:
        name = f"stepcast-{version()}-{git('rev-parse', '--short=12', 'HEAD').decode().strip()}"
    return json.dumps({"spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": name,
                       "documentNamespace": f"urn:stepcast:{name}",
                       "creationInfo": {"created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(commit_seconds())),
                                        "creators": [US, "Tool: packaging/release.py"]},
                       "packages": packages, "files": entries, "relationships": relations}, indent=2) + "\n"


def make(out, wheels):
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    files = [source_archive(out, int(git("log", "-1", "--format=%ct")))]
    built = [*wheels.glob(f"stepcast-{version()}-*manylinux*.whl"), *(ROOT / "build" / "release").glob(f"stepcast_{version()}-*.deb")]
    files += [Path(shutil.copy(file, out)) for file in sorted(built)]
    bill = out / f"stepcast-{version()}.spdx.json"
    bill.write_text(sbom(files))
    sums = "".join(f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in sorted([*files, bill]))
    (out / "SHA256SUMS").write_text(sums)
    return sums


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "release-files")
    parser.add_argument("--wheels", type=Path, default=ROOT / "build" / "dist", help="folder with the wheels of this version")
    parser.add_argument("--check", nargs="?", const="", metavar="TAG", help="compare version, change log and tag")
    parser.add_argument("--notes", action="store_true", help="print the change log of this version")
    parser.add_argument("--sbom", type=Path, metavar="FILE", help="write the SBOM of a binary package")
    parser.add_argument("--rename", nargs=2, metavar=("REPOSITORY", "SITE"), help="change the addresses in every file")
    given = parser.parse_args()
    if given.check is not None:
        if problems := list(problems_of(given.check)):
            sys.exit("\n".join(problems))
    elif given.notes:
        print(section(version()), end="")
    elif given.sbom:
        given.sbom.write_text(sbom())
    elif given.rename:
        rename(*given.rename)
    else:
        print(make(given.out, given.wheels), end="")


if __name__ == "__main__":
    main()
