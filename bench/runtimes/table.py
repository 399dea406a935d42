"""Puts what foreign.py reported into the table of docs/runtimes.md.

    python3 table.py report.json... ../../docs/runtimes.md
"""
import json
import pathlib
import re
import sys

tolerance = 2e-5  # as in runtimes_test.go


def verdict(answers):
    if not answers:
        return "not tried"
    good = [a["difference"] for a in answers.values() if a.get("difference", 1) <= tolerance]
    said = f"{len(good)} of {len(answers)}"
    if good and max(good):
        said += f", {max(good):.0e} at most"
    bad = {name: a.get("error") or f"differs by {a['difference']:.0e}" for name, a in answers.items() if a.get("difference", 1) > tolerance}
    for name, why in list(bad.items())[:1]:
        said += f"; {name}: {why[:120]}".replace("|", "/")
    return said


*reports, page = map(pathlib.Path, sys.argv[1:])
lines = ["| runtime | version | models | training steps |", "|---|---|---|---|"]
for report in reports:
    for name, r in json.loads(report.read_text()).items():
        if "version" in r:
            lines.append(f"| {name} | {r['version']} | {verdict(r.get('model'))} | {verdict(r.get('train_step'))} |")
text, count = re.subn(r"(?s)(<!-- table: runtimes -->\n).*?(<!-- end -->)", lambda m: m[1] + "\n" + "\n".join(lines) + "\n\n" + m[2], page.read_text())
if count != 1:
    sys.exit(f"{page} has no place for the table")
page.write_text(text)
