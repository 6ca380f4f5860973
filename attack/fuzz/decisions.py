"""Random decisions that come from bytes, which a fuzzer varies."""

import random


class Decisions(random.Random):
    """Random numbers that are taken from bytes, as long as there are any."""

    def __init__(self, content):
        super().__init__(content)
        self.content, self.position = content, 0

    def __new__(cls, content):
        return super().__new__(cls, 0)

    def getrandbits(self, k):
        end = self.position + (k + 7) // 8
        if end > len(self.content):
            return super().getrandbits(k)
        value = int.from_bytes(self.content[self.position : end], "little")
        self.position = end
        return value & ((1 << k) - 1)

    def random(self):
        if self.position + 2 > len(self.content):
            return super().random()
        return self.getrandbits(16) / 2**16
