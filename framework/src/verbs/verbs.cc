#include "verbs/verbs.h"

namespace tally::verbs {

const std::vector<cli::Verb>& all() {
  static const std::vector<cli::Verb> kVerbs{
      {"doctor", "Check versions, plugins, the ranks' exchange and the GPUs", declare_doctor},
      {"prepare", "Make or check the data, lock it, and draw the windows", declare_prepare},
      {"reference", "Compute the gradient that one rank gives over all shards", declare_reference},
      {"check-loss", "Check reducers on windows that can be computed by hand", declare_check_loss},
      {"train", "Train a recipe on local ranks, or as one rank of a launched run", declare_train},
      {"compare", "Compare the gradients of recipes with the reference", declare_compare},
      {"resume-check", "Check that a resumed run gives the bytes of an uninterrupted one",
       declare_resume_check},
      {"evaluate", "Compute loss and accuracy of a checkpoint on held-out data", declare_evaluate},
      {"exercise", "See what more tokens on one rank change, and predict it first",
       declare_exercise},
      {"checkpoints", "List, verify and compare checkpoints", declare_checkpoints},
      {"recipe", "Show what a recipe resolves to", declare_recipe},
      {"clean", "Remove what runs have written here", declare_clean},
      {"gradients", "Compute the gradients of a recipe", declare_gradients, /*hidden=*/true},
      {"doctor-rank", "A rank of doctor", declare_doctor_rank, /*hidden=*/true},
  };
  return kVerbs;
}

}  // namespace tally::verbs
