"""A hook of mkdocs: the site holds the files outside of docs/ that pages link to, and a list of what is in a folder that they link to."""

import re
from pathlib import Path

from mkdocs.structure.files import File

OUTSIDE = r"\]\(\.\./([^)#]+)"


def on_files(files, config):
    docs = Path(config["docs_dir"])
    pages = "\n".join(page.read_text(encoding="utf-8") for page in docs.glob("*.md"))
    for name in sorted(set(re.findall(OUTSIDE, pages))):
        files.append(File.generated(config, f"files/{name}", abs_src_path=str(docs.parent / name)))
    for name in sorted(set(re.findall(r"\]\(([a-z/]+)/\)", pages))):
        held = sorted(f"{one.name}/" if one.is_dir() else one.name for one in (docs / name).iterdir())
        links = "".join(f'<li><a href="{one}">{one}</a></li>' for one in held)
        files.append(File.generated(config, f"{name}/index.html", content=f'<!DOCTYPE html><html lang="en"><title>{name}</title><ul>{links}</ul></html>'))
    return files


def on_page_markdown(markdown, page, **_):
    return markdown if "/" in page.file.src_uri else re.sub(OUTSIDE, r"](files/\1", markdown)
