#!/usr/bin/env python3
"""The rooms of the host and who includes whom, read from the sources and from the ROOMS lists.

    tests/structure/include_graph.py             the rules; ends with 1 when one is broken
    tests/structure/include_graph.py --graph     the graph, as framework/docs/structure.md shows it
    tests/structure/include_graph.py --numbers   rooms, arrows, floors and the largest room
    tests/structure/include_graph.py --source FOLDER ...   of another tree

Standard library only.
"""

import argparse
import collections
import pathlib
import re
import sys

ROOM_LINES = 2600
TRAIN_LINES = 2000  # the loop has to stay a room that is read in one sitting
LISTS = "framework/CMakeLists.txt"
ROOMS_FOLDER = "framework/src"
SOURCES = (".cc", ".h", ".cu", ".cuh")
GENERATED = "generated"  # headers that CMake writes; no room

Include = collections.namedtuple("Include", "file line room target")


def sources(folder):
    return sorted(file for file in folder.rglob("*") if file.suffix in SOURCES)


def includes(file):
    """(line, text, quoted): the number of the line, what stands between the quotes or brackets, and which of them."""
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
        match = re.match(r'\s*#\s*include\s*(["<])([^">]+)[">]', line)
        if match:
            yield number, match.group(2), match.group(1) == '"'


def room_lists(text):
    """Room -> the rooms that its tally_room() names, in the order of the file: from the bottom up."""
    text = re.sub(r"#.*", "", text)
    lists = {}
    for call in re.findall(r"\btally_room\(([^)]*)\)", text):
        words, named, keyword = call.split(), [], None
        for word in words[1:]:
            if word in ("TORCH", "ROOMS", "LIBRARIES"):
                keyword = word
            elif keyword == "ROOMS":
                named.append(word)
        lists[words[0]] = named
    return lists


class Tree:
    """A source tree: its rooms, their ROOMS lists, their sizes, and each include of one room by another."""

    def __init__(self, source):
        self.source = pathlib.Path(source)
        self.lists = room_lists((self.source / LISTS).read_text(encoding="utf-8"))
        folder = self.source / ROOMS_FOLDER
        self.folders = sorted(entry.name for entry in folder.iterdir() if entry.is_dir() and sources(entry))
        self.lines = {room: sum(len(file.read_text(encoding="utf-8").splitlines()) for file in sources(folder / room))
                      for room in self.folders}
        self.includes = [include for room in self.folders for include in self._of_room(room)]

    def _of_room(self, room):
        for file in sources(self.source / ROOMS_FOLDER / room):
            for line, text, _ in includes(file):
                target = text.split("/")[0]
                if "/" in text and target in self.folders and target != room:
                    yield Include(self.name(file), line, room, target)

    def name(self, file):
        return file.relative_to(self.source).as_posix()

    def arrows(self):
        """Room -> the set of rooms that it includes."""
        arrows = {room: set() for room in self.folders}
        for include in self.includes:
            arrows[include.room].add(include.target)
        return arrows


def circle(arrows):
    """The rooms of one circle, the first again at the end; None where there is none."""
    done = set()

    def walk(room, path):
        if room in path:
            return [*path[path.index(room):], room]
        if room in done:
            return None
        for target in sorted(arrows[room]):
            found = walk(target, [*path, room])
            if found:
                return found
        done.add(room)
        return None

    return next((found for found in (walk(room, []) for room in sorted(arrows)) if found), None)


def circles(tree):
    found = circle(tree.arrows())
    if found:
        places = []
        for room, target in zip(found, found[1:]):
            places.append(next("{}:{}".format(i.file, i.line) for i in tree.includes if (i.room, i.target) == (room, target)))
        yield "the rooms {} include each other in a circle ({}); move what they share into a room below".format(
            " -> ".join(found), ", ".join(places))


def upward(tree):
    order = list(tree.lists)
    for include in tree.includes:
        if include.room in order and include.target in order and order.index(include.target) > order.index(include.room):
            yield "{}:{}: {} includes {}, which stands above it in {}; the lower room must not know the upper one".format(
                include.file, include.line, include.room, include.target, LISTS)
    for room, named in tree.lists.items():
        for target in named:
            if target not in order[:order.index(room)]:
                yield "{}: {} names the room {}, which does not stand above the call (rooms go from the bottom up)".format(
                    LISTS, room, target)


def unnamed(tree):
    for include in tree.includes:
        if include.target not in tree.lists.get(include.room, ()):
            yield "{}:{}: {} includes {}, but its ROOMS list in {} does not name {}; name it there, or do without".format(
                include.file, include.line, include.room, include.target, LISTS, include.target)


def unused(tree):
    arrows = tree.arrows()
    for room, named in tree.lists.items():
        for target in named:
            if target not in arrows.get(room, ()):
                yield "{}: {} names the room {} but includes nothing of it; take it off the list".format(LISTS, room, target)


def strays(tree):
    """Folders and calls without each other, and includes inside the host's folder that name no room."""
    for room in sorted(set(tree.folders) ^ set(tree.lists)):
        yield "{}: the room {} has {}".format(
            LISTS, room, "no tally_room() call" if room in tree.folders else "no folder with sources in " + ROOMS_FOLDER)
    for file in sources(tree.source / ROOMS_FOLDER):
        for line, text, quoted in includes(file):
            if quoted and text.split("/")[0] not in (*tree.folders, GENERATED):
                yield '{}:{}: "{}" names no room; write "ROOM/FILE"'.format(tree.name(file), line, text)


def outside(tree):
    """Public headers and plugins see the public headers alone, and a plugin no other plugin."""
    for top in ("framework/include", "plugins"):
        for file in sources(tree.source / top):
            for line, text, _ in includes(file):
                first = text.split("/")[0]
                if "/" in text and (first in tree.folders or (tree.source / "plugins" / first).is_dir()):
                    yield "{}:{}: includes {}; public headers and plugins include <tally/...> and their own files".format(
                        tree.name(file), line, text)


def sizes(tree):
    for room, lines in tree.lines.items():
        if lines > ROOM_LINES:
            yield "{}/{} has {:,} lines, more than {:,}; make two rooms of it".format(ROOMS_FOLDER, room, lines, ROOM_LINES)
        elif room == "train" and lines >= TRAIN_LINES:
            yield "{}/train has {:,} lines and must stay below {:,}; move what is not the loop out".format(
                ROOMS_FOLDER, lines, TRAIN_LINES)


RULES = (circles, upward, unnamed, unused, strays, outside, sizes)


def broken(tree):
    return [sentence for rule in RULES for sentence in rule(tree)]


def floors(arrows):
    """Room -> 0 where it includes no room, otherwise one above the highest that it includes."""
    found = {}

    def floor(room):
        if room not in found:
            found[room] = 1 + max((floor(target) for target in arrows[room]), default=-1)
        return found[room]

    for room in arrows:
        floor(room)
    return found


def direct(arrows):
    """The arrows without those that a longer way replaces."""
    def reached(room):
        return arrows[room].union(*(reached(target) for target in arrows[room]))

    return {room: {target for target in targets if not any(target in reached(other) for other in targets - {target})}
            for room, targets in arrows.items()}


def graph(tree):
    arrows = tree.arrows()
    by_floor = floors(arrows)
    order = sorted(arrows, key=lambda room: (-by_floor[room], room))
    lines = ["{} rooms, {} arrows, {} floors.".format(
        len(arrows), sum(map(len, arrows.values())), 1 + max(by_floor.values())), "", "```mermaid", "graph TD"]
    for room, targets in direct(arrows).items():
        lines += ["  {} --> {}".format(room, target) for target in sorted(targets)]
    lines += ["```", "", "| floor | room | includes |", "| --- | --- | --- |"]
    lines += ["| {} | {} | {} |".format(by_floor[room], room, ", ".join(sorted(arrows[room])) or "-") for room in order]
    return "\n".join(lines) + "\n"


def numbers(tree):
    arrows = tree.arrows()
    found = circle(arrows)
    largest = max(tree.lines, key=tree.lines.get)
    return "rooms {}, arrows {}, floors {}, largest room {} with {:,} lines of {:,}\n".format(
        len(arrows), sum(map(len, arrows.values())),
        "none, for " + " -> ".join(found) + " is a circle" if found else 1 + max(floors(arrows).values()),
        largest, tree.lines[largest], sum(tree.lines.values()))


def main():
    parser = argparse.ArgumentParser(description="The include graph between the rooms of the host.")
    parser.add_argument("--source", default=pathlib.Path(__file__).resolve().parents[2], help="the tree to read")
    parser.add_argument("--graph", action="store_true", help="print the graph")
    parser.add_argument("--numbers", action="store_true", help="print rooms, arrows, floors and the largest room")
    arguments = parser.parse_args()
    tree = Tree(arguments.source)
    if arguments.graph and circle(tree.arrows()):
        print(*circles(tree), file=sys.stderr)
        return 1
    if arguments.graph or arguments.numbers:
        sys.stdout.write(graph(tree) if arguments.graph else numbers(tree))
        return 0
    sentences = broken(tree)
    for sentence in sentences:
        print(sentence, file=sys.stderr)
    return 1 if sentences else 0


if __name__ == "__main__":
    sys.exit(main())
