/* UTF-8 in, code points and column widths out. Independent of the locale, so that headless output is the same
 * everywhere. */
#ifndef TUI_UTF8_H
#define TUI_UTF8_H

#include <stddef.h>
#include <stdint.h>

#define UTF8_REPLACEMENT 0xFFFDu

/* Decodes the first character of a NUL-terminated text and returns its length in bytes (0 at the end). What is not
   valid UTF-8 (stray, overlong, surrogate, cut short) is one replacement character per byte. */
size_t utf8_decode(const char *text, uint32_t *code);
/* Writes at most 4 bytes and no NUL; returns how many. */
size_t utf8_write(uint32_t code, char out[4]);
/* 0 for combining and invisible characters, 2 for wide ones, else 1. Control characters take 1: they are replaced. */
int utf8_width(uint32_t code);

#endif
