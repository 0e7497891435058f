"""Small damage to bytes and to JSON: what disks, editors and strangers do to files."""

import copy
import json
import random
from typing import Any

JUNK: list[Any] = [
    None,
    True,
    -1,
    0,
    2**63,
    1e308,
    float("nan"),
    "",
    "../../etc/passwd",
    "x" * 200,
    [],
    {},
    [[]],
    [None],
]


def mutate_bytes(chance: random.Random, content: bytes) -> bytes:
    data = bytearray(content)
    for _ in range(chance.randrange(1, 4)):
        where = chance.randrange(len(data) + 1) if chance.random() < 0.5 else chance.randrange(min(200, len(data)) + 1)
        kind = chance.randrange(5)
        if kind == 0:
            del data[where:]
        elif kind == 1:
            data[where : where + chance.randrange(1, 9)] = chance.randbytes(chance.randrange(9))
        elif kind == 2 and where < len(data):
            data[where] ^= 1 << chance.randrange(8)
        elif kind == 3:
            data[where:where] = data[: chance.randrange(64)]
        else:
            digit = chance.choice(b"0123456789")
            data[where : where + 1] = bytes([digit] * chance.randrange(1, 12))
    return bytes(data)


def mutate_json(chance: random.Random, text: bytes) -> bytes:
    """Half the time another value somewhere in the tree, half the time damaged bytes."""
    if chance.random() < 0.5:
        return mutate_bytes(chance, text)
    tree = copy.deepcopy(json.loads(text))
    node: Any = tree
    parents: list[tuple[Any, Any]] = []
    while isinstance(node, (dict, list)) and node and (chance.random() < 0.8 or not parents):
        key = chance.choice(list(node)) if isinstance(node, dict) else chance.randrange(len(node))
        parents.append((node, key))
        node = node[key]
    holder, key = parents[-1]
    if isinstance(holder, dict) and chance.random() < 0.3:
        value = holder.pop(key)
        if chance.random() < 0.5:
            holder[chance.choice(["../x", "nodes", "a/b", ""])] = value
    else:
        holder[key] = chance.choice(JUNK)
    return json.dumps(tree).encode()
