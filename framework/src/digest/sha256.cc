#include "digest/sha256.h"

#include <openssl/evp.h>
#include <tally/error.h>

#include <bit>
#include <stdexcept>

namespace tally {
namespace {

static_assert(std::endian::native == std::endian::little,
              "digests of integers are taken over their bytes in memory");

int nibble(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

void check(int result) {
  if (result != 1) throw std::runtime_error("OpenSSL refused to compute a SHA-256");
}

}  // namespace

Digest Digest::from_hex(std::string_view hex) {
  std::array<uint8_t, kBytes> bytes{};
  bool valid = hex.size() == 2 * kBytes;
  for (size_t i = 0; valid && i < kBytes; ++i) {
    const int high = nibble(hex[2 * i]);
    const int low = nibble(hex[2 * i + 1]);
    valid = high >= 0 && low >= 0;
    bytes[i] = static_cast<uint8_t>(valid ? high * 16 + low : 0);
  }
  if (!valid)
    throw DataError("'" + std::string(hex) +
                    "' is no SHA-256: 64 hexadecimal digits were expected");
  return Digest(bytes);
}

std::string Digest::hex() const {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const uint8_t byte : bytes_) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

Sha256::Sha256() : context_(EVP_MD_CTX_new(), EVP_MD_CTX_free) {
  check(context_ != nullptr);
  check(EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr));
}

Sha256::~Sha256() = default;

Sha256& Sha256::update(const void* data, size_t size) {
  check(EVP_DigestUpdate(context_.get(), data, size));
  return *this;
}

Sha256& Sha256::update(int64_t value) { return update(&value, sizeof value); }

Digest Sha256::finish() {
  std::array<uint8_t, Digest::kBytes> bytes{};
  check(EVP_DigestFinal_ex(context_.get(), bytes.data(), nullptr));
  return Digest(bytes);
}

Digest sha256(std::string_view text) { return Sha256().update(text).finish(); }

}  // namespace tally
