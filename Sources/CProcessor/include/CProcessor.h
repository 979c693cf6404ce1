// Instructions of the processor that Swift cannot express.
#ifndef CPROCESSOR_H
#define CPROCESSOR_H

/// Begins to bring the cache line of an address near, which will be read soon. Never fails, whatever the address.
static inline void processor_prefetch(const void *address) { __builtin_prefetch(address); }

#endif
