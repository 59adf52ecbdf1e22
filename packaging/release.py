"""What a release consists of, in build/release-files: source archive, wheel, SBOM (SPDX 2.3), SHA256SUMS.

    python3 packaging/release.py [--out DIR]      of the commit that is checked out; the wheel is that of `./dev wheel`

The same commit gives the same bytes: entries are sorted, their times are the commit's, and nothing of the machine enters.
"""

import argparse
import gzip
import hashlib
import io
import json
import re
import shutil
import subprocess
import tarfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# What the wheel and portable programs hold of others: name, licence, where its version stands.
PARTS = [("fmt", "MIT", "libfmt-dev"), ("yaml-cpp", "MIT", "libyaml-cpp-dev"), ("zlib", "Zlib", "zlib1g-dev"),
         ("CLI11", "BSD-3-Clause", "libcli11-dev"), ("tomlplusplus", "MIT", "libtomlplusplus-dev"),
         ("libstdc++", "GPL-3.0-or-later WITH GCC-exception-3.1", "libstdc++-12-dev")]


def git(*words):
    return subprocess.run(["git", "-C", ROOT, *words], capture_output=True, check=True).stdout


def version():
    return re.search(r"project\(stepcast VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text()).group(1)


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


def installed(package):
    done = subprocess.run(["dpkg-query", "-W", "-f", "${Version}", package], capture_output=True, text=True, check=False)
    return done.stdout or "NOASSERTION"


def sbom(files, seconds):
    us = "Organization: stepcast maintainers"
    packages = [{"SPDXID": "SPDXRef-" + re.sub("[^A-Za-z0-9.-]", "-", name), "name": name, "versionInfo": of, "supplier": supplier,
                 "downloadLocation": "NOASSERTION", "filesAnalyzed": False, "licenseConcluded": licence, "licenseDeclared": licence,
                 "copyrightText": "NOASSERTION"}
                for name, licence, of, supplier in [("stepcast", "Apache-2.0", version(), us)] +
                [(name, licence, installed(package), "Organization: Debian") for name, licence, package in PARTS]]
    relations = [{"spdxElementId": "SPDXRef-DOCUMENT", "relatedSpdxElement": "SPDXRef-stepcast", "relationshipType": "DESCRIBES"}]
    relations += [{"spdxElementId": "SPDXRef-stepcast", "relatedSpdxElement": one["SPDXID"], "relationshipType": "CONTAINS"}
                  for one in packages[1:]]
    entries = [{"SPDXID": f"SPDXRef-File-{number}", "fileName": f"./{file.name}", "licenseConcluded": "NOASSERTION", "copyrightText": "NOASSERTION",
                "checksums": [{"algorithm": kind.upper(), "checksumValue": hashlib.new(kind, file.read_bytes()).hexdigest()}
                              for kind in ("sha1", "sha256")]} for number, file in enumerate(sorted(files))]
    name = f"stepcast-{version()}-{git('rev-parse', '--short=12', 'HEAD').decode().strip()}"
    return {"spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": name,
            "documentNamespace": f"urn:stepcast:{name}",
            "creationInfo": {"created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds)),
                             "creators": [us, "Tool: packaging/release.py"]},
            "packages": packages, "files": entries, "relationships": relations}


def make(out):
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    seconds = int(git("log", "-1", "--format=%ct").decode())
    files = [source_archive(out, seconds)]
    files += [Path(shutil.copy(wheel, out)) for wheel in sorted((ROOT / "build" / "dist").glob("stepcast-*manylinux*.whl"))]
    bill = out / f"stepcast-{version()}.spdx.json"
    bill.write_text(json.dumps(sbom(files, seconds), indent=2) + "\n")
    sums = "".join(f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in sorted([*files, bill]))
    (out / "SHA256SUMS").write_text(sums)
    return sums


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "release-files")
    print(make(parser.parse_args().out), end="")
