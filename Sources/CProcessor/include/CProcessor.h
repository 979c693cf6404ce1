// Instructions of the processor that Swift cannot express.
#ifndef CPROCESSOR_H
#define CPROCESSOR_H

#include <stddef.h>
#include <stdint.h>

/// Begins to bring the cache line of an address near, which will be read soon. Never fails, whatever the address.
static inline void processor_prefetch(const void *address) { __builtin_prefetch(address); }

/// Whether processor_crc32 and processor_crc32c may be called: the processor multiplies without carry.
int processor_has_crc32(void);

/// Continues a CRC-32 (polynomial 0xEDB88320, reflected, neither inverted before nor after) with bytes: 64 or more, and a
/// multiple of 16.
uint32_t processor_crc32(uint32_t state, const void *bytes, size_t count);

/// The same for a CRC-32C (polynomial 0x82F63B78).
uint32_t processor_crc32c(uint32_t state, const void *bytes, size_t count);

#endif
