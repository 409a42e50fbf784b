// A shared library that has nothing to do with tally. Loading it would print, which no test may
// see.
#include <cstdio>

namespace {
[[maybe_unused]] const int printed = std::puts("bad_no_stamp ran");
}
