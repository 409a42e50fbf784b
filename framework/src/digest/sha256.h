#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

struct evp_md_ctx_st;

namespace tally {

/// A SHA-256 value.
class Digest {
 public:
  static constexpr size_t kBytes = 32;

  Digest() = default;
  explicit Digest(const std::array<uint8_t, kBytes>& bytes) : bytes_(bytes) {}
  /// Throws DataError unless `hex` is 64 hexadecimal digits.
  static Digest from_hex(std::string_view hex);

  std::string hex() const;
  const std::array<uint8_t, kBytes>& bytes() const { return bytes_; }
  bool operator==(const Digest&) const = default;

 private:
  std::array<uint8_t, kBytes> bytes_{};
};

/// SHA-256 of a stream of bytes, by OpenSSL.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;

  Sha256& update(const void* data, size_t size);
  Sha256& update(std::string_view text) { return update(text.data(), text.size()); }
  /// Eight bytes, little-endian.
  Sha256& update(int64_t value);
  /// Ends the stream; the object must not be used afterwards.
  Digest finish();

 private:
  std::unique_ptr<evp_md_ctx_st, void (*)(evp_md_ctx_st*)> context_;
};

Digest sha256(std::string_view text);

}  // namespace tally
