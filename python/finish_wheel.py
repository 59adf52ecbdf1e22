"""Checks that a wheel runs on glibc 2.28, adds its SBOM, and packs it again as manylinux_2_28: small, the same bytes for the same content.

    python3 python/finish_wheel.py build/dist/stepcast-*-py3-none-linux_x86_64.whl

Prints the name of the new file and removes the old one. Deflate is written by zopfli where it can be imported (5 % smaller, two
minutes), unless STEPCAST_QUICK_WHEEL is 1. SOURCE_DATE_EPOCH is the time of its files.
"""

import base64
import hashlib
import os
import re
import stat
import subprocess
import sys
import tempfile
import time
import zipfile
import zlib
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "packaging"))
import release

GLIBC = (2, 28)
LIBRARIES = {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "libgcc_s.so.1", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1",
             "libstepcast.so"}
MACHINES = {62: "x86_64", 183: "aarch64"}  # e_machine of ELF


def problems_of(file):
    """Symbols newer than GLIBC, and libraries that not every system has, of a program or library."""
    symbols = subprocess.run(["readelf", "-W", "--dyn-syms", file], capture_output=True, text=True, check=True).stdout
    for name, prefix, *version in re.findall(r"UND (\S+?)@+(GLIBC|GLIBCXX|CXXABI)_([0-9]+)\.([0-9]+)", symbols):
        if prefix != "GLIBC" or tuple(map(int, version)) > GLIBC:
            yield f"{name} of {prefix} {'.'.join(version)}"
    for library in re.findall(r"NEEDED.*\[(.*?)\]", subprocess.run(["readelf", "-d", file], capture_output=True, text=True, check=True).stdout):
        if library not in LIBRARIES:
            yield f"the library {library}"


def check(name, data):
    with tempfile.NamedTemporaryFile() as file:
        file.write(data)
        file.flush()
        found = sorted(problems_of(file.name))
    if found:
        sys.exit(f"{name} needs what is newer than glibc 2.28 or not on every system: {', '.join(found)}"
                 " (cmake/glibc_2_28.c takes functions in their old versions)")


def deflated(data):
    if os.environ.get("STEPCAST_QUICK_WHEEL") == "1":
        return None
    try:
        import zopfli.zlib
    except ImportError:
        return None
    return zopfli.zlib.compress(data, numiterations=4, blocksplittingmax=0)[2:-4]


def write(archive, name, data, mode, date):
    info = zipfile.ZipInfo(name, date)
    info.external_attr, info.create_system = (stat.S_IFREG | mode) << 16, 3
    small = deflated(data) if len(data) > 1024 else None
    if small is None:
        archive.writestr(info, data, zipfile.ZIP_DEFLATED, 9)
        return
    # What zipfile would do, with the bytes of another compressor.
    info.compress_type, info.file_size, info.compress_size, info.CRC = zipfile.ZIP_DEFLATED, len(data), len(small), zlib.crc32(data)
    info.header_offset = archive.fp.tell()
    archive.fp.write(info.FileHeader(False) + small)
    archive.start_dir = archive.fp.tell()
    archive.filelist.append(info)
    archive.NameToInfo[name] = info
    archive._didModify = True


def finish(wheel):
    with zipfile.ZipFile(wheel) as old:
        files = {one.filename: (old.read(one), one.external_attr >> 16 or 0o644) for one in old.infolist() if not one.is_dir()}
    machines = set()
    for name, (data, _) in files.items():
        if data[:4] == b"\x7fELF":
            check(name, data)
            machines.add(int.from_bytes(data[18:20], "little"))
    if len(machines) != 1 or not machines <= MACHINES.keys():
        sys.exit(f"{wheel.name}: its library and program are for {sorted(machines)}, expected one of {MACHINES}")
    machine = MACHINES[machines.pop()]
    tag = f"manylinux_{GLIBC[0]}_{GLIBC[1]}_{machine}"
    new = wheel.with_name(re.sub(r"linux_\w+(?=\.whl$)", tag, wheel.name))
    record = next(name for name in files if name.endswith(".dist-info/RECORD"))
    about = record.replace("RECORD", "WHEEL")
    text = re.sub(r"(?m)^(Tag: .*-)linux_\w+$", rf"\1{tag}", files[about][0].decode())
    files[about] = (text.encode(), files[about][1])
    files[record.replace("RECORD", "sboms/stepcast.spdx.json")] = (release.sbom().encode(), 0o644)
    lines = []
    for name, (data, _) in sorted(files.items()):
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        lines.append(f"{name},sha256={digest},{len(data)}" if name != record else f"{name},,")
    files[record] = ("\n".join(lines + [""]).encode(), 0o644)
    date = time.gmtime(max(int(os.environ.get("SOURCE_DATE_EPOCH", "1704067200")), 315532800))[:6]
    wheel.unlink()
    with zipfile.ZipFile(new, "w") as archive:
        for name, (data, mode) in sorted(files.items(), key=lambda one: (".dist-info/" in one[0], one[0])):
            write(archive, name, data, 0o755 if mode & 0o111 else 0o644, date)
    return new


if __name__ == "__main__":
    print(finish(Path(sys.argv[1])))
