#include "scaled_mean.h"

TALLY_PLUGIN("scaled_mean", "0.1.0", tally::hook<ScaledMean>("scaled_mean"))
