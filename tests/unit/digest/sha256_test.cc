#include "digest/sha256.h"

#include <gtest/gtest.h>
#include <tally/error.h>

namespace tally {
namespace {

struct Vector {
  std::string message, digest;
};

// FIPS 180-4 examples and NIST's byte-oriented short messages.
const Vector kVectors[] = {
    {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
    {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
    {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
     "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
    {"abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrlmnop"
     "qrsmnopqrstnopqrstu",
     "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1"},
    {"\xd3", "28969cdfa74a12c82f3bad960b0b000aca2ac329deea5c2328ebc6f2ba9802c1"},
    {std::string(1'000'000, 'a'),
     "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"},
};

TEST(Sha256, GivesTheDigestsThatNistPublished) {
  for (const Vector& vector : kVectors) EXPECT_EQ(sha256(vector.message).hex(), vector.digest);
}

TEST(Sha256, DoesNotDependOnHowTheBytesAreCut) {
  const std::string message = kVectors[3].message;
  for (size_t cut = 0; cut <= message.size(); ++cut) {
    Sha256 hash;
    hash.update(message.substr(0, cut)).update(message.substr(cut));
    EXPECT_EQ(hash.finish().hex(), kVectors[3].digest) << "cut at " << cut;
  }
}

TEST(Sha256, TakesAnIntegerAsEightLittleEndianBytes) {
  using namespace std::string_view_literals;
  EXPECT_EQ(Sha256().update(int64_t{0x0102030405060708}).finish(),
            sha256("\x08\x07\x06\x05\x04\x03\x02\x01"sv));
  EXPECT_EQ(Sha256().update(int64_t{-2}).finish(), sha256("\xfe\xff\xff\xff\xff\xff\xff\xff"sv));
}

TEST(Digest, ComesBackFromItsText) {
  const Digest digest = sha256("abc");
  EXPECT_EQ(Digest::from_hex(digest.hex()), digest);
  EXPECT_NE(Digest(), digest);
}

TEST(Digest, RefusesTextThatIsNoSha256) {
  const std::string good = sha256("abc").hex();
  for (const std::string& bad : {std::string(), good.substr(1), good + "0", "g" + good.substr(1),
                                 " " + good.substr(1), good.substr(1) + "\n"}) {
    try {
      Digest::from_hex(bad);
      ADD_FAILURE() << "accepted '" << bad << "'";
    } catch (const DataError& error) {
      EXPECT_EQ(error.what(), "'" + bad + "' is no SHA-256: 64 hexadecimal digits were expected");
    }
  }
}

}  // namespace
}  // namespace tally
