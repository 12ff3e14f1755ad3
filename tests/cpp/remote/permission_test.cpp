// SPDX-License-Identifier: Apache-2.0
#include "sampler/remote/permission.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>

namespace pystrobe::remote {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

/// Two processes of one user, nothing in force.
RefusalFacts Plain() {
  RefusalFacts facts;
  facts.pid = 77;
  facts.refused = "reading /proc/77/maps";
  facts.error_number = EACCES;
  facts.our_uid = facts.their_uid = 1000;
  facts.our_name = facts.their_name = "ada";
  return facts;
}

TEST(Refusal, AlwaysSaysWhatWasTried) {
  Error error = ExplainRefusal(Plain());
  EXPECT_EQ(error.code, ErrorCode::kPermission);
  EXPECT_THAT(error.message, StartsWith("reading /proc/77/maps was refused (Permission denied)"));
  EXPECT_THAT(error.message, HasSubstr("CAP_SYS_PTRACE"));
  EXPECT_NE(error.hint, "");
}

TEST(Refusal, OfAnotherUserNamesBothAndTheLeastPrivilege) {
  RefusalFacts facts = Plain();
  facts.their_uid = 1001;
  facts.their_name = "bob";
  facts.yama = 1;
  Error error = ExplainRefusal(facts);
  EXPECT_THAT(error.message, HasSubstr("user bob (1001) and you are user ada (1000)"));
  EXPECT_THAT(error.message, Not(HasSubstr("Yama")));
  EXPECT_THAT(error.hint, StartsWith("Run as that user: sudo -u bob pystrobe"));
}

TEST(Refusal, OfRootOffersNoDetourByThatUser) {
  RefusalFacts facts = Plain();
  facts.their_uid = 0;
  facts.their_name = "root";
  EXPECT_THAT(ExplainRefusal(facts).hint, Not(HasSubstr("sudo -u")));
  EXPECT_THAT(ExplainRefusal(facts).hint, StartsWith("Run as root: sudo pystrobe ... 77"));
}

TEST(Refusal, NamesTheExecutableByItsPath) {
  RefusalFacts facts = Plain();
  facts.our_executable = "/opt/bin/pystrobe";
  const std::string hint = ExplainRefusal(facts).hint;
  EXPECT_THAT(hint, HasSubstr("sudo /opt/bin/pystrobe ... 77"));
  EXPECT_THAT(hint, HasSubstr("setcap cap_sys_ptrace,cap_dac_read_search+ep /opt/bin/pystrobe"));
  EXPECT_THAT(hint, HasSubstr("libcap2-bin"));
  EXPECT_THAT(hint, HasSubstr("the two capabilities it needs"));
}

TEST(OurExecutable, IsKnownByWhateverName) {
  EXPECT_EQ(OurExecutable(), std::filesystem::read_symlink("/proc/self/exe"));
}

TEST(Refusal, ByYamaNamesTheValueAndStartsWithRun) {
  RefusalFacts facts = Plain();
  facts.yama = 1;
  Error error = ExplainRefusal(facts);
  EXPECT_THAT(error.message, HasSubstr("kernel.yama.ptrace_scope = 1"));
  EXPECT_THAT(error.hint, StartsWith("Start the program by `pystrobe run`"));
  EXPECT_THAT(error.hint, HasSubstr("PR_SET_PTRACER"));
  EXPECT_THAT(error.hint, HasSubstr("setcap"));
  EXPECT_THAT(error.hint, Not(HasSubstr("kubernetes")));
}

TEST(Refusal, ByYamaTwoDoesNotOfferWhatWouldNotHelp) {
  RefusalFacts facts = Plain();
  facts.yama = 2;
  Error error = ExplainRefusal(facts);
  EXPECT_THAT(error.message, HasSubstr("ptrace_scope = 2"));
  EXPECT_THAT(error.hint, Not(HasSubstr("pystrobe run")));
}

TEST(Refusal, ByYamaThreeEvenForRoot) {
  RefusalFacts facts = Plain();
  facts.our_uid = 0;
  facts.have_ptrace_capability = true;
  facts.yama = 3;
  EXPECT_THAT(ExplainRefusal(facts).message, HasSubstr("ptrace_scope = 3"));
}

TEST(Refusal, OfOurOwnChildIsNotYamaOnesDoing) {
  RefusalFacts facts = Plain();
  facts.yama = 1;
  facts.is_descendant = true;
  facts.not_dumpable = true;
  Error error = ExplainRefusal(facts);
  EXPECT_THAT(error.message, Not(HasSubstr("Yama")));
  EXPECT_THAT(error.message, HasSubstr("not dumpable"));
}

TEST(Refusal, OfRootInAContainerSpeaksOfTheContainer) {
  RefusalFacts facts = Plain();
  facts.our_uid = 0;
  facts.our_container = "docker";
  Error error = ExplainRefusal(facts);
  EXPECT_THAT(error.hint, HasSubstr("--cap-add=SYS_PTRACE"));
  EXPECT_THAT(error.hint, HasSubstr("securityContext"));
}

TEST(Refusal, OfRootWithoutTheCapabilityDoesNotOfferRoot) {
  RefusalFacts facts = Plain();
  facts.our_uid = 0;
  facts.their_uid = 1001;
  const std::string hint = ExplainRefusal(facts).hint;
  EXPECT_THAT(hint, Not(HasSubstr("Run as root")));
  EXPECT_THAT(hint, Not(HasSubstr("setcap")));
  EXPECT_THAT(hint, HasSubstr("CapabilityBoundingSet"));
  EXPECT_THAT(hint, HasSubstr("--cap-add=SYS_PTRACE"));
}

TEST(Refusal, WithTheCapabilityPointsToSeccomp) {
  RefusalFacts facts = Plain();
  facts.have_ptrace_capability = true;
  facts.our_seccomp = 2;
  Error error = ExplainRefusal(facts);
  EXPECT_THAT(error.message, HasSubstr("seccomp"));
  EXPECT_THAT(error.hint, HasSubstr("seccomp=unconfined"));
}

TEST(Container, KindsByCgroup) {
  EXPECT_EQ(ContainerKind("0::/user.slice/user-1000.slice/session-2.scope\n"), "");
  EXPECT_EQ(ContainerKind("0::/system.slice/docker-0123abcd.scope\n"), "docker");
  EXPECT_EQ(ContainerKind("0::/system.slice/docker.service\n"), "");
  EXPECT_EQ(ContainerKind("0::/kubepods.slice/kubepods-burstable.slice/cri-containerd-1.scope\n"),
            "kubernetes");
  EXPECT_EQ(ContainerKind("0::/machine.slice/libpod-1234.scope/container\n"), "podman");
  EXPECT_EQ(ContainerKind("4:memory:/lxc/web\n"), "lxc");
}

}  // namespace
}  // namespace pystrobe::remote
