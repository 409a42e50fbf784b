#include <tally/abi.h>

// The stamp is there, the exported descriptor is not.
extern "C" __attribute__((used)) const char* const not_the_descriptor = tally::kStamp;
