"""Damaged recipes through the whole program. The many are in the unit test of run; these show that a sentence comes out."""

import random
import unittest

from tally_program import SOURCE, TallyTest

MUTATIONS = 25
SNIPPETS = (
    b"\x00",
    b"\xff",
    b"\x1b[31m",
    "\u202e".encode(),
    b"[" * 20000,
    b"a." * 20000 + b"a = 1\n",
    b"x" * 2000000,
    b'"""',
    b'name = "../../x"\n',
    b"seed = 1e999\n",
    b"[[task]]\n",
    b"[run]\nranks = 0\n",
)


def mutated(text: bytes, source: random.Random) -> bytes:
    """The text with a snippet somewhere, or without a part."""
    place = source.randrange(len(text))
    if source.random() < 0.3:
        return text[:place] + text[place + source.randint(1, 30) :]
    return text[:place] + source.choice(SNIPPETS) + text[place:]


class FuzzedRecipe(TallyTest):
    def test_a_damaged_recipe_is_shown_or_refused_with_one_sentence(self):
        source = random.Random(1)
        shipped = (SOURCE / "recipes/correct.toml").read_bytes().replace(b"../configs", b"configs")
        refused = 0
        for number in range(MUTATIONS):
            (self.tally.folder / "own.toml").write_bytes(mutated(shipped, source))
            with self.subTest(number):
                result = self.tally.run("recipe", "show", "own.toml", timeout=30)
                self.assertIn(result.code, (0, 2, 3, 5), result)
                if result.code != 0:
                    refused += 1
                    sentence = result.sentence()
                    self.assertTrue(sentence.isprintable(), result)
                    self.assertLess(len(sentence), 2000)
        self.assertGreater(refused, MUTATIONS // 2)
        written = {path.name for path in self.tally.folder.iterdir()}
        self.assertEqual(written, {"own.toml", "recipes", "configs"})


if __name__ == "__main__":
    unittest.main()
