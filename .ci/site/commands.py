"""Reference of the commands for the documentation site, made from the help texts of the program."""

import os
import re
import subprocess

PROGRAM = os.environ.get("MIPLC_PROGRAM", "miplc")
FLAG = re.compile(r"^ +(?:(-\w), )?(--[\w-]+)(?: ([\w]+))?(?: {2,}(.*))?$")
SECTIONS = ("Usage", "Aliases", "Examples", "Available Commands", "Flags", "Global Flags")
INTRODUCTION = """# Commands

The pages of this section have the texts that `miplc help COMMAND` prints.

"""


def pages():
    """Return the page of each command of the program, with its subcommands, and an overview."""
    text, sections = read_help()
    names = [name for name, _ in subcommands(sections)]
    found = {"commands/index.md": INTRODUCTION + overview(sections, "{}.md") + prose(text) + body(sections)}
    return found | {f"commands/{name}.md": f"# miplc {name}\n\n" + command(name) for name in names}


def command(*names):
    """Return the description of a command, and of its subcommands below their headings."""
    text, sections = read_help(*names)
    path = " ".join(["miplc", *names])
    found = prose(text) + overview(sections, f"#{path.replace(' ', '-')}-{{}}") + body(sections)
    for name, _ in subcommands(sections):
        found += f"{'#' * (len(names) + 1)} {path} {name}\n\n" + command(*names, name)
    return found


def read_help(*names):
    """Return the text of a help, and its sections by their titles."""
    printed = subprocess.run([PROGRAM, "help", *names], check=True, capture_output=True, text=True).stdout
    parts = re.split(rf"^({'|'.join(SECTIONS)}):\n", printed, flags=re.MULTILINE)
    # A line at the left margin after a section is the end that every help has.
    sections = {title: re.split(r"\n(?=\S)", text)[0] for title, text in zip(parts[1::2], parts[2::2])}
    return parts[0], sections


def subcommands(sections):
    lines = sections.get("Available Commands", "").splitlines()
    found = [tuple(line.split(None, 1)) for line in lines if line.strip()]
    return [(name, summary) for name, summary in found if name != "help"]


def overview(sections, address):
    """Return the table of subcommands, with links to their descriptions."""
    rows = [f"| [{name}]({address.format(name)}) | {escaped(summary)} |\n" for name, summary in subcommands(sections)]
    return "| command | purpose |\n|---|---|\n" + "".join(rows) + "\n" if rows else ""


def prose(text):
    """Return a help text as Markdown; indented lines are code."""
    found = ""
    for block in re.findall(r"(?:^ .*\n(?:\n(?= ))?)+|(?:^[^ \n].*\n)+", text.rstrip() + "\n", re.MULTILINE):
        found += f"```text\n{dedented(block)}\n```\n\n" if block.startswith(" ") else escaped(block) + "\n"
    return found


def body(sections):
    found = f"```text\n{dedented(sections['Usage'])}\n```\n\n"
    if "Examples" in sections:
        found += f"**Examples**\n\n```sh\n{dedented(sections['Examples'])}\n```\n\n"
    for title in ("Flags", "Global Flags"):
        if title in sections:
            found += f"**{title}**\n\n{flags(sections[title])}\n"
    return found


def flags(text):
    """Return the table of flags; a flag may have several lines."""
    rows = []
    for line in text.strip("\n").splitlines():
        if match := FLAG.match(line):
            short, name, kind, description = match.groups()
            shown = f"`{name}`" + (f", `{short}`" if short else "") + (f" *{kind}*" if kind else "")
            rows.append([shown, description or ""])
        elif rows and line.startswith(" " * 8):
            rows[-1][1] += " " + line.strip()
        else:
            raise ValueError(f"this line of a help is not the description of a flag: {line!r}")
    return "| flag | meaning |\n|---|---|\n" + "".join(f"| {a} | {escaped(b.strip())} |\n" for a, b in rows)


def dedented(text):
    lines = text.strip("\n").splitlines()
    margin = min(len(line) - len(line.lstrip()) for line in lines if line.strip())
    return "\n".join(line[margin:] for line in lines)


def escaped(text):
    """Return text as Markdown: with flags as code, and links to the pages of docs that it names."""
    text = re.sub(r"([\\`*_{}\[\]<>#|~])", r"\\\1", text)
    text = re.sub(r"(?<!\S)(\(?)(--[a-z][\w-]*(?:=[\w./-]*\w)?)", r"\1`\2`", text)
    return re.sub(r"\bdocs/([\w-]+\.md)", r"[docs/\1](../\1)", text)
