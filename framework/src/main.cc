#include "cli/program.h"
#include "verbs/verbs.h"

int main(int argc, char** argv) { return tally::cli::run_program(argc, argv, tally::verbs::all()); }
