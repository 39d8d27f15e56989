/* Numbers with their units, as a user reads them. */
#ifndef BASE_UNITS_H
#define BASE_UNITS_H

#include <stddef.h>
#include <stdint.h>

/* "12.3 us", "4.56 ms", "1.25 s": three digits; "" for what is not a positive number. */
void units_seconds(double seconds, char *text, size_t size);

/* "96 B", "79.0 KiB", "1.07 GiB". */
void units_bytes(uint64_t bytes, char *text, size_t size);

#endif
