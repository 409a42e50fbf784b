"""Holds the rules of include_graph.py on the tree, its page, and each rule on a planted violation."""

import os
import pathlib
import re
import tempfile
import unittest

import include_graph

SOURCE = pathlib.Path(os.environ.get("TALLY_SOURCE", pathlib.Path(__file__).resolve().parents[2]))
PAGE = SOURCE / "framework/docs/structure.md"

SOUND = {
    "framework/CMakeLists.txt": "tally_room(log) # tally_room(no)\ntally_room(files ROOMS log LIBRARIES a::b)\n"
                                "tally_room(train TORCH ROOMS files log)\n",
    "framework/src/main.cc": '#include "train/trainer.h"\n',
    "framework/src/log/log.h": "#include <string>\n",
    "framework/src/files/file.cc": '#include "files/file.h"\n#include "log/log.h"\n',
    "framework/src/files/file.h": "",
    "framework/src/train/trainer.h": '#include "files/file.h"\n#include "log/log.h"\n#include "generated/version.h"\n',
    "framework/include/tally/plugin.h": "#include <tally/types.h>\n",
    "plugins/mean/mean.cc": '#include "mean.h"\n#include <tally/plugin.h>\n',
    "plugins/other/other.h": "",
}


def tree_of(folder, files):
    for name, text in files.items():
        file = pathlib.Path(folder) / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return include_graph.Tree(folder)


class PlantedTest(unittest.TestCase):
    """Each test plants one violation in a sound tree and wants the whole list of sentences."""

    def broken(self, changes):
        with tempfile.TemporaryDirectory(prefix="tally-structure-") as folder:
            return include_graph.broken(tree_of(folder, {**SOUND, **changes}))

    def rules(self, *lists):
        return {"framework/CMakeLists.txt": "\n".join("tally_room({})".format(words) for words in lists)}

    def test_a_sound_tree_breaks_no_rule(self):
        self.assertEqual(self.broken({}), [])

    def test_a_circle_is_found_also_where_both_lists_name_the_other(self):
        sentences = self.broken({**self.rules("log ROOMS files", "files ROOMS log", "train ROOMS files log"),
                                 "framework/src/log/log.h": '\n#include "files/file.h"\n'})
        self.assertEqual(sentences[0], "the rooms files -> log -> files include each other in a circle "
                         "(framework/src/files/file.cc:2, framework/src/log/log.h:2); move what they share into a room below")

    def test_a_circle_of_three_rooms_is_found(self):
        sentences = self.broken({"framework/src/files/file.cc": "", "framework/src/files/file.h": '#include "log/log.h"\n',
                                 "framework/src/log/log.h": '#include "train/trainer.h"\n',
                                 "framework/src/train/trainer.h": '#include "files/file.h"\n'})
        self.assertIn("the rooms files -> log -> train -> files include each other in a circle", sentences[0])

    def test_an_upward_include_is_found(self):
        sentences = self.broken({**self.rules("log", "train ROOMS files log", "files ROOMS log")})
        self.assertEqual(sentences, [
            "framework/src/train/trainer.h:1: train includes files, which stands above it in framework/CMakeLists.txt; "
            "the lower room must not know the upper one",
            "framework/CMakeLists.txt: train names the room files, which does not stand above the call "
            "(rooms go from the bottom up)"])

    def test_an_include_of_an_unnamed_room_is_found(self):
        self.assertEqual(self.broken(self.rules("log", "files ROOMS log", "train ROOMS files")), [
            "framework/src/train/trainer.h:2: train includes log, but its ROOMS list in framework/CMakeLists.txt does not "
            "name log; name it there, or do without"])

    def test_an_include_in_brackets_counts(self):
        sentences = self.broken({**self.rules("log", "files", "train ROOMS files log"),
                                 "framework/src/files/file.cc": "#  include <log/log.h>\n"})
        self.assertEqual(len(sentences), 1)
        self.assertIn("framework/src/files/file.cc:1: files includes log", sentences[0])

    def test_a_room_that_is_named_for_nothing_is_found(self):
        self.assertEqual(self.broken({"framework/src/files/file.cc": ""}), [
            "framework/CMakeLists.txt: files names the room log but includes nothing of it; take it off the list"])

    def test_folders_and_calls_belong_together(self):
        self.assertEqual(self.broken({"framework/src/misc/misc.cc": ""}),
                         ["framework/CMakeLists.txt: the room misc has no tally_room() call"])
        self.assertEqual(self.broken(self.rules("log", "files ROOMS log", "train ROOMS files log", "lost")),
                         ["framework/CMakeLists.txt: the room lost has no folder with sources in framework/src"])

    def test_an_include_names_its_room(self):
        self.assertEqual(self.broken({"framework/src/log/log.cc": '#include "log.h"\n'}),
                         ['framework/src/log/log.cc:1: "log.h" names no room; write "ROOM/FILE"'])

    def test_public_headers_and_plugins_see_no_room_and_no_other_plugin(self):
        for name in ("framework/include/tally/plugin.h", "plugins/mean/mean.cc"):
            for text in ("log/log.h", "other/other.h", "../other/other.h"):
                with self.subTest(name + " " + text):
                    self.assertEqual(self.broken({name: '#include "{}"\n'.format(text)}), [
                        "{}:1: includes {}; public headers and plugins include <tally/...> and their own files".format(
                            name, text)])

    def test_a_room_may_have_2600_lines_and_no_more(self):
        self.assertEqual(self.broken({"framework/src/log/log.h": "\n" * 2600}), [])
        self.assertEqual(self.broken({"framework/src/log/log.h": "\n" * 2601}),
                         ["framework/src/log has 2,601 lines, more than 2,600; make two rooms of it"])

    def test_train_stays_below_2000_lines(self):
        self.assertEqual(self.broken({"framework/src/train/more.cc": "\n" * 1996}), [])
        self.assertEqual(self.broken({"framework/src/train/more.cc": "\n" * 1997}), [
            "framework/src/train has 2,000 lines and must stay below 2,000; move what is not the loop out"])


class GraphTest(unittest.TestCase):
    def test_the_graph_has_floors_and_leaves_out_what_a_longer_way_replaces(self):
        with tempfile.TemporaryDirectory(prefix="tally-structure-") as folder:
            tree = tree_of(folder, SOUND)
            self.assertEqual(include_graph.graph(tree),
                             "3 rooms, 3 arrows, 3 floors.\n\n```mermaid\ngraph TD\n  files --> log\n  train --> files\n```\n\n"
                             "| floor | room | includes |\n| --- | --- | --- |\n"
                             "| 2 | train | files, log |\n| 1 | files | log |\n| 0 | log | - |\n")
            self.assertEqual(include_graph.numbers(tree),
                             "rooms 3, arrows 3, floors 3, largest room train with 3 lines of 6\n")


class TreeTest(unittest.TestCase):
    def setUp(self):
        self.tree = include_graph.Tree(SOURCE)

    def test_no_rule_is_broken(self):
        self.assertEqual(include_graph.broken(self.tree), [])
        self.assertGreaterEqual(len(self.tree.folders), 10)

    def test_the_page_shows_the_graph_of_now(self):
        self.assertIn(include_graph.graph(self.tree), PAGE.read_text(encoding="utf-8"),
                      "put the output of tests/structure/include_graph.py --graph into " + PAGE.name)

    def test_the_page_says_what_each_room_is(self):
        described = re.findall(r"^\| \[(\w+)\]\(\.\./src/\1\) \| \S", PAGE.read_text(encoding="utf-8"), re.M)
        self.assertEqual(sorted(described), self.tree.folders)


if __name__ == "__main__":
    unittest.main()
