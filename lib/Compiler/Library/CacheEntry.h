#ifndef BNGRAD_LIB_COMPILER_LIBRARY_CACHEENTRY_H
#define BNGRAD_LIB_COMPILER_LIBRARY_CACHEENTRY_H

#include <cstdint>
#include <cstring>
#include <string>

namespace bngrad {

/// The start of a file of the cache. The text of the module and a shared object
/// follow. libBNGradCompiler.so writes it, and libBNGradRuntime.so reads it
/// without LLVM.
struct CacheEntryHeader {
  char magic[8];
  uint64_t textSize;
  uint64_t imageSize;
  uint64_t checksum; // of text and image
};

inline constexpr char kCacheEntryMagic[] = "BNGRAD1";

/// FNV-1a of `size` bytes, continued from `hash`.
inline uint64_t hashBytes(const char *data, size_t size,
                          uint64_t hash = 0xcbf29ce484222325) {
  for (size_t i = 0; i < size; ++i)
    hash = (hash ^ static_cast<unsigned char>(data[i])) * 0x100000001b3;
  return hash;
}

/// The name of the file of `key`, as llvm::pruneCache expects it.
inline std::string getCacheFileName(const std::string &key) {
  return "llvmcache-" + key;
}

inline CacheEntryHeader makeCacheEntryHeader(const std::string &text,
                                             const std::string &image) {
  CacheEntryHeader header = {{}, text.size(), image.size(), 0};
  std::memcpy(header.magic, kCacheEntryMagic, sizeof(header.magic));
  header.checksum = hashBytes(image.data(), image.size(),
                              hashBytes(text.data(), text.size()));
  return header;
}

} // namespace bngrad

#endif // BNGRAD_LIB_COMPILER_LIBRARY_CACHEENTRY_H
