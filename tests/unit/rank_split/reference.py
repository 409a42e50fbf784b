"""What random.Random of this Python draws, one answer a line.

random SEED        then one question a line on stdin: "state", "bits K", "sample SIZE COUNT"
windows SEED SHARDS ACCUMULATION BATCH_SIZE SPLIT_LENGTH WINDOWS
                   then the examples' lengths on stdin; ids of each window, shard by shard
"""

import random
import sys


def answer(generator, question):
    kind, *numbers = question.split()
    numbers = [int(number) for number in numbers]
    if kind == "state":
        return generator.getstate()[1]
    if kind == "bits":
        return [generator.getrandbits(numbers[0])]
    return generator.sample(range(numbers[0]), numbers[1])


def windows(seed, shards, accumulation, batch_size, split_length, count):
    lengths = [int(length) for length in sys.stdin.read().split()]
    pools = [
        [i for i, length in enumerate(lengths) if length <= split_length],
        [i for i, length in enumerate(lengths) if length > split_length],
    ]
    generator = random.Random(seed + 10)
    share = accumulation * batch_size
    for _ in range(count):
        plan = [None] * shards
        for pool in (0, 1):
            members = [shard for shard in range(shards) if shard % 2 == pool]
            drawn = generator.sample(pools[pool], share * len(members))
            for i, shard in enumerate(members):
                plan[shard] = drawn[i * share : (i + 1) * share]
        yield [example for shard in plan for example in shard]


numbers = [int(argument) for argument in sys.argv[2:]]
if sys.argv[1] == "random":
    source = random.Random(numbers[0])
    lines = (answer(source, question) for question in sys.stdin)
else:
    lines = windows(*numbers)
for line in lines:
    print(*line)
