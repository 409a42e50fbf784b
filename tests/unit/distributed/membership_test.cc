#include "distributed/membership.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <tally/error.h>

#include <cstdlib>
#include <map>
#include <string>

namespace tally::distributed {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

/// The process's environment, emptied of every launcher's variables; put back at the end.
class MembershipTest : public ::testing::Test {
 protected:
  MembershipTest() {
    for (const char* name : {"RANK",
                             "WORLD_SIZE",
                             "LOCAL_RANK",
                             "LOCAL_WORLD_SIZE",
                             "MASTER_ADDR",
                             "MASTER_PORT",
                             "TALLY_BOARD",
                             "TORCHELASTIC_USE_AGENT_STORE",
                             "TORCHELASTIC_RUN_ID",
                             "TORCHELASTIC_RESTART_COUNT",
                             "SLURM_PROCID",
                             "SLURM_STEP_NUM_TASKS",
                             "SLURM_LOCALID",
                             "SLURM_NTASKS_PER_NODE",
                             "SLURM_STEP_ID",
                             "SLURM_JOB_ID",
                             "SLURM_STEP_NUM_NODES",
                             "OMPI_COMM_WORLD_RANK",
                             "OMPI_COMM_WORLD_SIZE",
                             "OMPI_COMM_WORLD_LOCAL_RANK",
                             "OMPI_COMM_WORLD_LOCAL_SIZE",
                             "PMI_RANK",
                             "PMI_SIZE",
                             "MPI_LOCALRANKID",
                             "MPI_LOCALNRANKS"}) {
      if (const char* value = std::getenv(name)) before_[name] = value;
      ::unsetenv(name);
    }
  }
  ~MembershipTest() override {
    for (const std::string& name : set_) ::unsetenv(name.c_str());
    for (const auto& [name, value] : before_) ::setenv(name.c_str(), value.c_str(), 1);
  }

  void set(const std::map<std::string, std::string>& variables) {
    for (const auto& [name, value] : variables) {
      ::setenv(name.c_str(), value.c_str(), 1);
      set_.push_back(name);
    }
  }

  void expect_rejected(const std::string& sentence) {
    EXPECT_THAT([] { membership_from_environment(); },
                ThrowsMessage<ConfigError>(HasSubstr(sentence)));
  }

 private:
  std::map<std::string, std::string> before_;
  std::vector<std::string> set_;
};

TEST_F(MembershipTest, NobodyLaunchedThisProcess) {
  EXPECT_FALSE(membership_from_environment().has_value());
}

TEST_F(MembershipTest, OurLauncherServesTheStoreAndMapsABoard) {
  set({{"RANK", "2"},
       {"WORLD_SIZE", "4"},
       {"LOCAL_RANK", "2"},
       {"LOCAL_WORLD_SIZE", "4"},
       {"MASTER_ADDR", "127.0.0.1"},
       {"MASTER_PORT", "41234"},
       {"TALLY_BOARD", "/proc/self/fd/9"}});
  const Membership self = membership_from_environment().value();
  EXPECT_EQ(self.launcher, "tally");
  EXPECT_EQ(self.rank, 2);
  EXPECT_EQ(self.world, 4);
  EXPECT_EQ(self.local_rank, 2);
  EXPECT_EQ(self.local_world, 4);
  EXPECT_EQ(self.address, "127.0.0.1");
  EXPECT_EQ(self.port, 41234);
  EXPECT_TRUE(self.external_store);
  EXPECT_EQ(self.board_file, "/proc/self/fd/9");
}

TEST_F(MembershipTest, TorchrunWithItsAgentsStoreMakesEveryRankAClient) {
  set({{"RANK", "5"},
       {"WORLD_SIZE", "8"},
       {"LOCAL_RANK", "1"},
       {"LOCAL_WORLD_SIZE", "4"},
       {"MASTER_ADDR", "node0"},
       {"MASTER_PORT", "29400"},
       {"TORCHELASTIC_USE_AGENT_STORE", "True"},
       {"TORCHELASTIC_RUN_ID", "job7"},
       {"TORCHELASTIC_RESTART_COUNT", "2"}});
  const Membership self = membership_from_environment().value();
  EXPECT_EQ(self.launcher, "torchrun");
  EXPECT_EQ(self.rank, 5);
  EXPECT_EQ(self.world, 8);
  EXPECT_EQ(self.local_rank, 1);
  EXPECT_EQ(self.local_world, 4);
  EXPECT_EQ(self.address, "node0");
  EXPECT_EQ(self.port, 29400);
  EXPECT_TRUE(self.external_store);
  EXPECT_EQ(self.run_id, "job7/2");
  EXPECT_EQ(self.board_file, "");
}

TEST_F(MembershipTest, WithoutAnAgentsStoreRankZeroServesIt) {
  set({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"TORCHELASTIC_USE_AGENT_STORE", "False"}});
  const Membership self = membership_from_environment().value();
  EXPECT_FALSE(self.external_store);
  EXPECT_EQ(self.address, "127.0.0.1");
  EXPECT_EQ(self.port, 29500) << "torchrun's default";
  EXPECT_EQ(self.local_rank, 0);
  EXPECT_EQ(self.local_world, 2);
}

TEST_F(MembershipTest, ASlurmStepOnOneNode) {
  set({{"SLURM_STEP_ID", "0"},
       {"SLURM_STEP_NUM_TASKS", "3"},
       {"SLURM_PROCID", "1"},
       {"SLURM_LOCALID", "1"},
       {"SLURM_JOB_ID", "123456"},
       {"SLURM_STEP_NUM_NODES", "1"}});
  const Membership self = membership_from_environment().value();
  EXPECT_EQ(self.launcher, "Slurm");
  EXPECT_EQ(self.rank, 1);
  EXPECT_EQ(self.world, 3);
  EXPECT_EQ(self.local_rank, 1);
  EXPECT_EQ(self.address, "127.0.0.1");
  EXPECT_EQ(self.port, 20000 + 123456 % 20000) << "two jobs on one node rarely meet";
  EXPECT_EQ(self.run_id, "slurm-123456.0");
  EXPECT_FALSE(self.external_store);
}

TEST_F(MembershipTest, ASlurmStepOverNodesMustNameTheFirst) {
  set({{"SLURM_STEP_ID", "0"},
       {"SLURM_STEP_NUM_TASKS", "2"},
       {"SLURM_PROCID", "0"},
       {"SLURM_STEP_NUM_NODES", "2"}});
  expect_rejected("a Slurm step over several nodes needs MASTER_ADDR, the host of rank 0");
  set({{"MASTER_ADDR", "node1"}});
  EXPECT_EQ(membership_from_environment()->address, "node1");
}

TEST_F(MembershipTest, ABatchScriptOfSlurmIsNoRank) {
  set({{"SLURM_STEP_ID", "batch"}, {"SLURM_STEP_NUM_TASKS", "2"}, {"SLURM_PROCID", "0"}});
  EXPECT_FALSE(membership_from_environment().has_value());
}

TEST_F(MembershipTest, OpenMpi) {
  set({{"OMPI_COMM_WORLD_RANK", "3"},
       {"OMPI_COMM_WORLD_SIZE", "4"},
       {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
       {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}});
  const Membership self = membership_from_environment().value();
  EXPECT_EQ(self.launcher, "MPI");
  EXPECT_EQ(self.rank, 3);
  EXPECT_EQ(self.world, 4);
  EXPECT_EQ(self.local_rank, 1);
  EXPECT_EQ(self.local_world, 2);
  EXPECT_FALSE(self.external_store);
}

TEST_F(MembershipTest, MpichAndIntelMpi) {
  set({{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}, {"MPI_LOCALRANKID", "0"}, {"MPI_LOCALNRANKS", "1"}});
  const Membership self = membership_from_environment().value();
  EXPECT_EQ(self.launcher, "MPI");
  EXPECT_EQ(self.rank, 1);
  EXPECT_EQ(self.world, 2);
  EXPECT_EQ(self.local_rank, 0);
  EXPECT_EQ(self.local_world, 1);
}

TEST_F(MembershipTest, EachIncompleteContractNamesTheMissingVariable) {
  set({{"PMI_SIZE", "2"}});
  expect_rejected("the environment sets PMI_SIZE but not PMI_RANK; set both, or unset both");
  set({{"OMPI_COMM_WORLD_SIZE", "2"}});
  expect_rejected("sets OMPI_COMM_WORLD_SIZE but not OMPI_COMM_WORLD_RANK");
  set({{"SLURM_STEP_ID", "3"}, {"SLURM_STEP_NUM_TASKS", "2"}});
  expect_rejected("sets SLURM_STEP_NUM_TASKS but not SLURM_PROCID");
  set({{"WORLD_SIZE", "2"}});
  expect_rejected("sets WORLD_SIZE but not RANK");
}

TEST_F(MembershipTest, ARankWithoutItsWorldIsIncomplete) {
  set({{"RANK", "0"}});
  expect_rejected("the environment sets RANK but not WORLD_SIZE");
}

TEST_F(MembershipTest, ValuesThatContradictEachOtherAreNamed) {
  set({{"RANK", "2"}, {"WORLD_SIZE", "2"}});
  expect_rejected("the environment's RANK is '2', but an integer from 0 to 1 was expected");
  set({{"RANK", "-1"}});
  expect_rejected("RANK is '-1'");
  set({{"RANK", "1x"}});
  expect_rejected("RANK is '1x'");
  set({{"RANK", "0"}, {"WORLD_SIZE", "0"}});
  expect_rejected("WORLD_SIZE is '0', but an integer from 1 to");
  set({{"WORLD_SIZE", "2"}, {"MASTER_PORT", "65536"}});
  expect_rejected("MASTER_PORT is '65536', but an integer from 1 to 65535");
}

TEST_F(MembershipTest, KnowsALoopbackAddress) {
  for (const char* address : {"127.0.0.1", "127.1.2.3", "localhost", "::1"})
    EXPECT_TRUE(is_loopback(address)) << address;
  for (const char* address : {"10.0.0.1", "node0", "0.0.0.0", "1270.0.0.1"})
    EXPECT_FALSE(is_loopback(address)) << address;
}

}  // namespace
}  // namespace tally::distributed
