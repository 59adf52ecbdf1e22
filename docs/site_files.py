"""A hook of mkdocs: the site holds the files outside of docs/ that pages link to, and a list of what is in a folder that they link to."""

import re
from pathlib import Path

from mkdocs.structure.files import File

OUTSIDE = r"\]\(\.\./([^)#]+)"


def served(name):
    """The name of a file of the checkout on the site: a page outside of docs/ is served as text, since its links are those of the checkout."""
    return f"files/{name}.txt" if str(name).endswith(".md") else f"files/{name}"


def listing(config, folder, name):
    """A page with links to what `folder` holds."""
    held = sorted(one for one in folder.iterdir() if one.name != "__pycache__")
    outside = name.startswith("files/")
    hrefs = [f"{one.name}/index.html" if one.is_dir() else served(one.name)[6:] if outside else one.name for one in held]
    links = "".join(f'<li><a href="{href}">{one.name}</a></li>' for href, one in zip(hrefs, held))
    content = f'<!DOCTYPE html><html lang="en"><title>{name}</title><ul>{links}</ul></html>'
    return File.generated(config, f"{name}/index.html", content=content)


def on_files(files, config):
    docs = Path(config["docs_dir"])
    pages = "\n".join(page.read_text(encoding="utf-8") for page in docs.glob("*.md"))
    for name in sorted({name.rstrip("/") for name in re.findall(OUTSIDE, pages)}):
        outside = docs.parent / name
        for path in sorted(outside.rglob("*")) if outside.is_dir() else [outside]:
            inside = path.relative_to(docs.parent)
            if path.is_dir():
                files.append(listing(config, path, f"files/{inside}"))
            elif "__pycache__" not in path.parts:
                files.append(File.generated(config, served(inside), abs_src_path=str(path)))
        if outside.is_dir():
            files.append(listing(config, outside, f"files/{name}"))
    for name in sorted(set(re.findall(r"\]\(([a-z/]+)/\)", pages))):
        files.append(listing(config, docs / name, name))
    return files


def on_page_markdown(markdown, page, **_):
    """Links out of docs/ lead into files/; those to a folder lead to its list."""
    if "/" in page.file.src_uri:
        return markdown
    docs = Path(page.file.src_dir)

    def inside(link):
        name = link[1].rstrip("/")
        return f"]({served(name)}{'/index.html' if (docs.parent / name).is_dir() else ''}"

    markdown = re.sub(OUTSIDE, inside, markdown)
    return re.sub(r"\]\(([a-z/]+)/\)", r"](\1/index.html)", markdown)
