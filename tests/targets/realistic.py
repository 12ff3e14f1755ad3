# SPDX-License-Identifier: Apache-2.0
"""Ordinary work: parses and unparses the modules of the standard library, over and over."""

import ast
import os

import control


def sources(directory):
    for name in sorted(os.listdir(directory)):
        if name.endswith(".py"):
            with open(os.path.join(directory, name), encoding="utf-8", errors="replace") as file:
                yield name, file.read()


def digest(name, text):
    tree = ast.parse(text, name)
    for node in ast.walk(tree):
        ast.iter_child_nodes(node)
    if hasattr(ast, "unparse"):
        compile(ast.unparse(tree), name, "exec")


def main():
    directory = os.path.dirname(ast.__file__)
    texts = list(sources(directory))
    control.ready(modules=len(texts))  # -> ready
    while control.running:
        for name, text in texts:
            digest(name, text)
            control.progress[0] += 1
            if not control.running:
                break


if __name__ == "__main__":
    main()
