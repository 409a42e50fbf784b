#include "cli/verbs.h"

namespace tally::cli {

const std::vector<Verb>& verbs() {
  static const std::vector<Verb> kVerbs{
      {"prepare", "Make or check the data, lock it, and draw the windows", declare_prepare},
      {"reference", "Compute the gradient that one rank gives over all shards", declare_reference},
      {"train", "Train a recipe on local ranks, or as one rank of a launched run", declare_train},
      {"compare", "Compare the gradients of recipes with the reference", declare_compare},
      {"gradients", "Compute the gradients of a recipe", declare_gradients, /*hidden=*/true},
  };
  return kVerbs;
}

}  // namespace tally::cli
