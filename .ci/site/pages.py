"""Hook of mkdocs: pages of the repository outside of docs, generated pages, and links between them.

The Markdown is written for the repository: links are relative to the file that contains them. On the site
they lead to the page of their target, or to the file in the repository if it has no page.
"""

import posixpath
import re
import subprocess
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import commands
from markdown.extensions import Extension
from markdown.treeprocessors import Treeprocessor
from markdown.util import AtomicString
from mkdocs.plugins import get_plugin_logger
from mkdocs.structure.files import File

ROOT = Path(__file__).resolve().parents[2]

# Pages outside of docs, by their address on the site. The files of a folder keep their paths.
OUTSIDE = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "python/README.md": "python-package.md",
    "internal/release/README.md": "release.md",
    "bench/README.md": "bench/README.md",
    "bench/results/*.md": "bench/results/",
    "examples/*/README.md": "examples/",
}

GO_API = """# Go API

[Go services](go.md) shows how to use package runtime. This page lists its exported names, with their documentation.

"""
GO_TYPES = """## Types of internal packages

Fields of the types above have these types.

"""
PYTHON_API = """# Python API

[Python](python.md) shows how to use the package. This page lists its exported names, with their documentation.

::: miplc
"""

# What a browser loads from another server.
REMOTE = re.compile(
    r'<(?:script|img|iframe|source)\b[^>]*\ssrc="(?:https?:)?//[^"]*"'
    r'|<link rel="stylesheet" href="(?:https?:)?//[^"]*"'
)

log = get_plugin_logger("pages")
page_of = {}  # from the path of a file in the repository to the address of its page, ending in .md
source_of = {}  # the opposite
current = None  # the page that is being converted
repository = ""


def on_config(config):
    global repository
    repository = config.repo_url.rstrip("/")
    config.markdown_extensions.append(RepositoryLinks())
    return config


def on_files(files, config):
    page_of.clear()
    page_of.update({"docs/" + f.src_uri: f.src_uri for f in files})
    for pattern, address in OUTSIDE.items():
        found = sorted(ROOT.glob(pattern))
        if not found:
            raise FileNotFoundError(f"no file of the repository matches {pattern}, see {__file__}")
        for path in found:
            source = path.relative_to(ROOT).as_posix()
            page_of[source] = source if address.endswith("/") else address
            files.append(File.generated(config, page_of[source], abs_src_path=str(path)))
    source_of.clear()
    source_of.update({address: source for source, address in page_of.items()})

    for name in ("style.css", "search.js"):
        files.append(File.generated(config, name, abs_src_path=str(Path(__file__).with_name(name))))
    go_api = GO_API + goapi("runtime", "runtime/onnxgo") + GO_TYPES
    go_api += goapi("internal/contract.Metadata", "internal/onnxruntime.SessionOptions")
    generated = {"go-api.md": go_api, "python-api.md": PYTHON_API} | commands.pages()
    for address, text in generated.items():
        files.append(File.generated(config, address, content=text))
    config.nav = expanded(config.nav, sorted(f.src_uri for f in files.documentation_pages()))
    return files


def expanded(nav, pages):
    """Return the navigation with the pages of a folder in place of its name."""
    if isinstance(nav, list):
        return [expanded(entry, pages) for entry in nav]
    if isinstance(nav, dict):
        return {title: expanded(entry, pages) for title, entry in nav.items()}
    if not nav.endswith("/"):
        return nav
    found = [page for page in pages if page.startswith(nav)]
    return sorted(found, key=lambda page: not page.endswith(("/index.md", "/README.md")))


def goapi(*packages):
    command = ["go", "run", ".ci/site/goapi.go", *packages]
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout


def on_page_markdown(markdown, page, config, files):
    global current
    current = page.file.src_uri
    source = source_of.get(current)
    page.edit_url = source and f"{repository}/edit/main/{source}"


def on_page_content(html, page, config, files):
    """Remove from the Python API the dashes before empty descriptions, and the quotes of types."""
    if page.file.src_uri == "python-api.md":
        html = re.sub(r'\s+–\s+<div class="doc-md-description">\s*</div>', "", html).replace("``", "")
    return html


def on_post_page(output, page, config):
    for found in REMOTE.findall(output):
        log.warning("%s loads a file from another server: %s", page.file.src_uri, found)


class RepositoryLinks(Extension):
    def extendMarkdown(self, md):
        # After the links are parsed, at 20, and before mkdocs checks them, at 0.
        md.treeprocessors.register(RewriteLinks(md), "repository-links", 5)


class RewriteLinks(Treeprocessor):
    def run(self, root):
        for code in root.iterfind(".//td/code"):
            code.text = AtomicString(code.text.replace("\\|", "|"))  # as GitHub does
            if " " not in code.text:
                code.set("class", "word")
        source = source_of.get(current)
        for element in root.iter() if source else ():
            for attribute in ("href", "src"):
                if attribute in element.attrib:
                    element.set(attribute, rewrite(element.get(attribute), source))


def rewrite(link, source):
    """Return the link on the site for a link in a file of the repository.

    A link to a file that does not exist stays as it is, and mkdocs reports it.
    """
    parts = urlsplit(link.removeprefix(f"{repository}/blob/main/"))
    if link.startswith(repository + "/blob/main/"):
        target = parts.path
    elif parts.scheme or parts.netloc or not parts.path:
        return link
    else:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(source), parts.path))
    page = page_of.get(target) or page_of.get(target + "/README.md")
    if page:
        path = posixpath.relpath(page, posixpath.dirname(current) or ".")
        return urlunsplit(("", "", path, "", parts.fragment))
    if not (ROOT / target).exists():
        return link
    kind = "tree" if (ROOT / target).is_dir() else "blob"
    return f"{repository}/{kind}/main/{target}" + (parts.fragment and "#" + parts.fragment)
