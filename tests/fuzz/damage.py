"""Strategies for damaged files: bytes that are changed, lost or added, and values in the place of others."""

import re
import struct

from hypothesis import strategies as st

TOKENS = (
    *(
        b"-1",
        b"0",
        b"1",
        b"2",
        b"3.5",
        b"1e999",
        b"-1e400",
        b"NaN",
        b"Infinity",
        b"99999999999",
        b"9" * 25,
        b"9" * 5000,
    ),
    *(
        b"null",
        b"true",
        b"false",
        b"[]",
        b"{}",
        b'""',
        b'"x"',
        b"[1, [2, {}]]",
        b'{"a": 1}',
        b"[" * 60,
        b'[""]',
        b"nan",
    ),
    *(
        b'"../../outside/x"',
        b'"/etc/passwd"',
        b'"a/b"',
        b'".."',
        b'"\\u0000"',
        b'"\\ud800"',
        b"'x'",
        b"inf",
        b"1979-05-27",
    ),
    *(
        b"",
        b" ",
        b"\n",
        b"\x00",
        b"\xff",
        b"\xed\xa0\x80",
        b",",
        b"=",
        b"\\",
        b"\t",
        b"grace",
        b"mario",
        b"-0.0",
        b"1_0",
    ),
)
_WORD = re.compile(rb'"(?:[^"\\\\]|\\\\.)*"|\\\\"[^"\\\\]*\\\\"|-?[0-9][0-9.eE+-]*|[A-Za-z_][A-Za-z_0-9]*')
KINDS = ("word", "word", "word", "word", "value", "value", "set", "insert", "delete", "cut", "repeat", "header", "line")

changes = st.lists(
    st.tuples(
        st.sampled_from(KINDS),
        st.floats(0, 1, exclude_max=True),
        st.one_of(st.sampled_from(TOKENS), st.binary(min_size=1, max_size=8)),
    ),
    min_size=1,
    max_size=3,
)
"""What happens to a file: where, and with which bytes. :func:`damaged` does it."""

Changes = list[tuple[str, float, bytes]]


def damaged(content: bytes, done: Changes) -> bytes:
    for kind, where, new in done:
        content = _change(content, kind, where, new)
    return content


def _change(content: bytes, kind: str, where: float, new: bytes) -> bytes:
    at = int(where * len(content))
    if kind == "word":  # anything that looks like a name, a number or a text
        return _with_word(content, where, new)
    if kind == "value":  # what follows a colon or an equals sign
        found = list(re.finditer(rb"(?<=[:=]) *[^,:=\n{}\[\]]+", content))
        if found:
            one = found[int(where * len(found))]
            return content[: one.start()] + new + content[one.end() :]
        return content
    if kind == "header" and len(content) > 8:  # of safetensors: its length is written before it
        (length,) = struct.unpack("<Q", content[:8])
        header = content[8 : 8 + length] if length < len(content) else content[8:]
        header = _with_word(header, where, new)
        return struct.pack("<Q", len(header)) + header + content[8 + length :]
    if kind == "line":
        lines = content.split(b"\n")
        lines[int(where * len(lines))] = new
        return b"\n".join(lines)
    if kind == "insert":
        return content[:at] + new + content[at:]
    if kind == "delete":
        return content[:at] + content[at + max(1, len(new)) :]
    if kind == "cut":
        return content[:at]
    if kind == "repeat":
        return content[:at] + content[at // 2 :]
    return content[:at] + new + content[at + len(new) :]


def _with_word(content: bytes, where: float, new: bytes) -> bytes:
    found = list(_WORD.finditer(content))
    if not found:
        return content
    one = found[int(where * len(found))]
    return content[: one.start()] + new + content[one.end() :]
