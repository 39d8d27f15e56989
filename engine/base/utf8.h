/* UTF-8 in, code points and column widths out. Independent of the locale, so that headless output is the same
 * everywhere. */
#ifndef BASE_UTF8_H
#define BASE_UTF8_H

#include <stddef.h>
#include <stdint.h>

#define UTF8_REPLACEMENT 0xFFFDu

/* Decodes the first character of a NUL-terminated text and returns its length in bytes (0 at the end). What is not
   valid UTF-8 (stray, overlong, surrogate, cut short) is one replacement character per byte. */
size_t utf8_decode(const char *text, uint32_t *code);
/* Writes at most 4 bytes and no NUL; returns how many. */
size_t utf8_write(uint32_t code, char out[4]);
/* 0 for combining and invisible characters, 2 for wide ones, else 1. */
int utf8_width(uint32_t code);

/* What a terminal is shown instead of the character that utf8_decode() found at text, as less(1) shows it: "^[" for a
   control character, "<U+009B>" for one of C1, "<U+202E>" for one that changes the direction of text or is not seen,
   "<9B>" for a byte that is no UTF-8. Returns its length, which is its columns too; 0: the character may be shown. */
#define UTF8_NAME_BYTES 12
size_t utf8_name(const char *text, size_t length, uint32_t code, char name[UTF8_NAME_BYTES]);
/* Columns of what is shown for it. */
int utf8_columns(const char *text, size_t length, uint32_t code);

#endif
