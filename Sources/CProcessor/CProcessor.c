#include "CProcessor.h"

#if defined(__x86_64__)
#include <immintrin.h>

/// Multiplies both halves of a remainder by powers of x, which moves it to a later block, and adds that block.
__attribute__((target("pclmul,sse4.1"))) static inline __m128i fold(__m128i rest, __m128i powers, __m128i block) {
  __m128i low = _mm_clmulepi64_si128(rest, powers, 0x00);
  __m128i high = _mm_clmulepi64_si128(rest, powers, 0x11);
  return _mm_xor_si128(_mm_xor_si128(low, high), block);
}

/// What a checksum multiplies by, bits reflected: powers of x modulo its polynomial, by which a remainder is carried over four
/// blocks, over one, and to a word; and the polynomial with its quotient, by which is divided (Barrett).
struct factors {
  long long by_four[2], by_one[2], to_word, divisor[2];
};

/// The remainder of bits as a polynomial over GF(2).
__attribute__((target("pclmul,sse4.1"), always_inline)) static inline uint32_t remainder_of(
    uint32_t state, const void *bytes, size_t count, struct factors factors) {
  const __m128i by_four = _mm_set_epi64x(factors.by_four[1], factors.by_four[0]);
  const __m128i by_one = _mm_set_epi64x(factors.by_one[1], factors.by_one[0]);
  const __m128i to_word = _mm_set_epi64x(0, factors.to_word);
  const __m128i divisor = _mm_set_epi64x(factors.divisor[1], factors.divisor[0]);
  const __m128i words = _mm_setr_epi32(-1, 0, -1, 0);
  const __m128i *block = bytes;
  __m128i rest[4];
  for (int place = 0; place < 4; place++) rest[place] = _mm_loadu_si128(block + place);
  rest[0] = _mm_xor_si128(rest[0], _mm_cvtsi32_si128((int)state));
  for (block += 4, count -= 64; count >= 64; block += 4, count -= 64) {
    for (int place = 0; place < 4; place++) rest[place] = fold(rest[place], by_four, _mm_loadu_si128(block + place));
  }
  __m128i sum = rest[0];
  for (int place = 1; place < 4; place++) sum = fold(sum, by_one, rest[place]);
  for (; count >= 16; block++, count -= 16) sum = fold(sum, by_one, _mm_loadu_si128(block));
  sum = _mm_xor_si128(_mm_srli_si128(sum, 8), _mm_clmulepi64_si128(sum, by_one, 0x10));
  sum = _mm_xor_si128(_mm_srli_si128(sum, 4), _mm_clmulepi64_si128(_mm_and_si128(sum, words), to_word, 0x00));
  __m128i quotient = _mm_clmulepi64_si128(_mm_and_si128(sum, words), divisor, 0x10);
  __m128i product = _mm_clmulepi64_si128(_mm_and_si128(quotient, words), divisor, 0x00);
  return (uint32_t)_mm_extract_epi32(_mm_xor_si128(sum, product), 1);
}

__attribute__((target("pclmul,sse4.1"))) uint32_t processor_crc32(uint32_t state, const void *bytes, size_t count) {
  const struct factors factors = {
      {0x0154442bd4, 0x01c6e41596}, {0x01751997d0, 0x00ccaa009e}, 0x0163cd6124, {0x01db710641, 0x01f7011641}};
  return remainder_of(state, bytes, count, factors);
}

__attribute__((target("pclmul,sse4.1"))) uint32_t processor_crc32c(uint32_t state, const void *bytes, size_t count) {
  const struct factors factors = {
      {0x00740eef02, 0x009e4addf8}, {0x00f20c0dfe, 0x014cd00bd6}, 0x00dd45aab8, {0x0105ec76f1, 0x00dea713f1}};
  return remainder_of(state, bytes, count, factors);
}

int processor_has_crc32(void) { return __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.1"); }
#else
uint32_t processor_crc32(uint32_t state, const void *bytes, size_t count) { return state; }
uint32_t processor_crc32c(uint32_t state, const void *bytes, size_t count) { return state; }
int processor_has_crc32(void) { return 0; }
#endif
