"""The flags of a verb, read from `stepcast VERB --help-all`: what `serve` makes its controls from and python/write_flags.py its keywords."""

import re


def options_of(help_text):
    """A dictionary for each flag: names (the first is the usual one), the kind of value (empty for a switch), and the allowed values
    where the help lists them, as `TEXT:{on,off}` or as `sequence parallelism: on, off`."""
    found = []
    for line in re.sub(r"\n {12,}", "  ", help_text).splitlines():
        match = re.match(r"  (?:-\w,)?(--[\w-]+(?:,--[\w-]+)*)(?: (\S.*?))?(?:  +(.*))?$", line)
        if match:
            names, value, meaning = match[1].split(","), match[2] or "", re.sub(" +", " ", match[3] or "")
            value = "" if value.startswith(("Needs:", "Excludes:")) else value
            listed = re.search(r"\{([^}]*)\}", value)
            words = re.search(r"(?:^|: )((?:[a-z][\w-]*(?: \(\w+\))?, )+[a-z][\w-]*(?: \(\w+\))?)(?=$|;| \(default)", meaning)
            allowed = listed[1].split(",") if listed else [word.split()[0] for word in words[1].split(", ")] if words else []
            found.append({"names": names, "value": value, "allowed": allowed})
    return found
