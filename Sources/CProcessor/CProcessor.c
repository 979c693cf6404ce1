#include "CProcessor.h"

#if defined(__x86_64__)
#include <immintrin.h>

/// Multiplies both halves of a remainder by powers of x, which moves it to a later block, and adds that block.
__attribute__((target("pclmul,sse4.1"))) static inline __m128i fold(__m128i rest, __m128i powers, __m128i block) {
  __m128i low = _mm_clmulepi64_si128(rest, powers, 0x00);
  __m128i high = _mm_clmulepi64_si128(rest, powers, 0x11);
  return _mm_xor_si128(_mm_xor_si128(low, high), block);
}

/// Polynomials over GF(2), bits reflected: the remainder is carried over four blocks, then over one, and then divided (Barrett).
__attribute__((target("pclmul,sse4.1"))) uint32_t processor_crc32(uint32_t state, const void *bytes, size_t count) {
  const __m128i by_four = _mm_set_epi64x(0x01c6e41596, 0x0154442bd4);
  const __m128i by_one = _mm_set_epi64x(0x00ccaa009e, 0x01751997d0);
  const __m128i to_word = _mm_set_epi64x(0, 0x0163cd6124);
  const __m128i divisor = _mm_set_epi64x(0x01f7011641, 0x01db710641);
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

int processor_has_crc32(void) { return __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.1"); }
#else
uint32_t processor_crc32(uint32_t state, const void *bytes, size_t count) { return state; }
int processor_has_crc32(void) { return 0; }
#endif
