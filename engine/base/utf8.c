#include "engine/base/utf8.h"

#include <stdbool.h>
#include <stdio.h>

struct range {
    uint32_t first, last;
};

/* Combining and zero-width characters: Unicode 15, general categories Mn, Me and Cf, the blocks met in source text. */
static const struct range invisible[] = {
    {0x00AD, 0x00AD}, {0x0300, 0x036F}, {0x0483, 0x0489},   {0x0591, 0x05BD}, {0x064B, 0x065F}, {0x0E31, 0x0E31},
    {0x0E34, 0x0E3A}, {0x0E47, 0x0E4E}, {0x1AB0, 0x1AFF},   {0x1DC0, 0x1DFF}, {0x200B, 0x200F}, {0x202A, 0x202E},
    {0x2060, 0x2064}, {0x2066, 0x206F}, {0x20D0, 0x20F0},   {0x302A, 0x302D}, {0x3099, 0x309A}, {0xFE00, 0xFE0F},
    {0xFE20, 0xFE2F}, {0xFEFF, 0xFEFF}, {0xE0001, 0xE01EF},
};

/* East Asian Width W and F: Unicode 15, EastAsianWidth.txt, neighboring ranges joined. */
static const struct range wide[] = {
    {0x1100, 0x115F},   {0x231A, 0x231B},   {0x2329, 0x232A},   {0x23E9, 0x23EC},   {0x23F0, 0x23F0},
    {0x23F3, 0x23F3},   {0x25FD, 0x25FE},   {0x2614, 0x2615},   {0x2648, 0x2653},   {0x267F, 0x267F},
    {0x2693, 0x2693},   {0x26A1, 0x26A1},   {0x26AA, 0x26AB},   {0x26BD, 0x26BE},   {0x26C4, 0x26C5},
    {0x26CE, 0x26CE},   {0x26D4, 0x26D4},   {0x26EA, 0x26EA},   {0x26F2, 0x26F3},   {0x26F5, 0x26F5},
    {0x26FA, 0x26FA},   {0x26FD, 0x26FD},   {0x2705, 0x2705},   {0x270A, 0x270B},   {0x2728, 0x2728},
    {0x274C, 0x274C},   {0x274E, 0x274E},   {0x2753, 0x2755},   {0x2757, 0x2757},   {0x2795, 0x2797},
    {0x27B0, 0x27B0},   {0x27BF, 0x27BF},   {0x2B1B, 0x2B1C},   {0x2B50, 0x2B50},   {0x2B55, 0x2B55},
    {0x2E80, 0x303E},   {0x3041, 0x3247},   {0x3250, 0x4DBF},   {0x4E00, 0xA4CF},   {0xA960, 0xA97C},
    {0xAC00, 0xD7A3},   {0xF900, 0xFAFF},   {0xFE10, 0xFE19},   {0xFE30, 0xFE6F},   {0xFF01, 0xFF60},
    {0xFFE0, 0xFFE6},   {0x16FE0, 0x18CFF}, {0x1AFF0, 0x1B2FF}, {0x1F004, 0x1F004}, {0x1F0CF, 0x1F0CF},
    {0x1F18E, 0x1F18E}, {0x1F191, 0x1F19A}, {0x1F200, 0x1F265}, {0x1F300, 0x1F320}, {0x1F32D, 0x1F335},
    {0x1F337, 0x1F37C}, {0x1F37E, 0x1F393}, {0x1F3A0, 0x1F3CA}, {0x1F3CF, 0x1F3D3}, {0x1F3E0, 0x1F3F0},
    {0x1F3F4, 0x1F3F4}, {0x1F3F8, 0x1F43E}, {0x1F440, 0x1F440}, {0x1F442, 0x1F4FC}, {0x1F4FF, 0x1F53D},
    {0x1F54B, 0x1F567}, {0x1F57A, 0x1F57A}, {0x1F595, 0x1F596}, {0x1F5A4, 0x1F5A4}, {0x1F5FB, 0x1F64F},
    {0x1F680, 0x1F6C5}, {0x1F6CC, 0x1F6DF}, {0x1F6EB, 0x1F6EC}, {0x1F6F4, 0x1F6FC}, {0x1F7E0, 0x1F7F0},
    {0x1F90C, 0x1F93A}, {0x1F93C, 0x1F945}, {0x1F947, 0x1FAFF}, {0x20000, 0x2FFFD}, {0x30000, 0x3FFFD},
};

/* Characters that say how others are shown, and blanks that cannot be seen: Unicode 15, general category Cf, and the
   separators of lines and paragraphs. What reorders text makes source that reads otherwise than it compiles
   (CVE-2021-42574). */
static const struct range formats[] = {
    {0x00AD, 0x00AD},   {0x0600, 0x0605},   {0x061C, 0x061C},   {0x06DD, 0x06DD},   {0x070F, 0x070F},
    {0x180E, 0x180E},   {0x200B, 0x200F},   {0x2028, 0x202E},   {0x2060, 0x206F},   {0xFEFF, 0xFEFF},
    {0xFFF9, 0xFFFB},   {0x110BD, 0x110BD}, {0x110CD, 0x110CD}, {0x13430, 0x1343F}, {0x1BCA0, 0x1BCA3},
    {0x1D173, 0x1D17A}, {0xE0001, 0xE007F},
};

static bool among(const struct range *ranges, size_t n, uint32_t code)
{
    size_t low = 0, high = n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (code > ranges[middle].last)
            low = middle + 1;
        else
            high = middle;
    }
    return low < n && code >= ranges[low].first;
}

int utf8_width(uint32_t code)
{
    if (code < 0xAD)
        return 1;
    if (among(invisible, sizeof invisible / sizeof *invisible, code))
        return 0;
    return among(wide, sizeof wide / sizeof *wide, code) ? 2 : 1;
}

size_t utf8_decode(const char *text, uint32_t *code)
{
    const unsigned char *t = (const unsigned char *)text;
    *code = t[0];
    if (t[0] == 0)
        return 0;
    if (t[0] < 0x80)
        return 1;
    /* Smallest code of each length: what could be said shorter is refused. */
    static const uint32_t smallest[5] = {0, 0, 0x80, 0x800, 0x10000};
    size_t length = t[0] >= 0xF0 ? 4 : t[0] >= 0xE0 ? 3 : 2;
    uint32_t c = length == 4 ? t[0] & 0x07u : length == 3 ? t[0] & 0x0Fu : t[0] & 0x1Fu;
    *code = UTF8_REPLACEMENT;
    if (t[0] < 0xC2 || t[0] > 0xF4)
        return 1;
    for (size_t i = 1; i < length; i++) {
        if ((t[i] & 0xC0) != 0x80) /* also the terminating NUL */
            return 1;
        c = c << 6 | (t[i] & 0x3Fu);
    }
    if (c < smallest[length] || c > 0x10FFFF || (c >= 0xD800 && c <= 0xDFFF))
        return 1;
    *code = c;
    return length;
}

size_t utf8_write(uint32_t code, char out[4])
{
    if (code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF))
        code = UTF8_REPLACEMENT;
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    size_t length = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (size_t i = length; i-- > 1; code >>= 6)
        out[i] = (char)(0x80u | (code & 0x3Fu));
    static const unsigned char lead[5] = {0, 0, 0xC0, 0xE0, 0xF0};
    out[0] = (char)(lead[length] | code);
    return length;
}

size_t utf8_name(const char *text, size_t length, uint32_t code, char name[UTF8_NAME_BYTES])
{
    const unsigned byte = (unsigned char)text[0];
    if (code < 0x20 || code == 0x7F)
        return (size_t)snprintf(name, UTF8_NAME_BYTES, "^%c", (int)(code ^ 0x40));
    if (length == 1 && byte >= 0x80)
        return (size_t)snprintf(name, UTF8_NAME_BYTES, "<%02X>", byte);
    if ((code >= 0x80 && code < 0xA0) || among(formats, sizeof formats / sizeof *formats, code))
        return (size_t)snprintf(name, UTF8_NAME_BYTES, "<U+%04X>", (unsigned)code);
    return 0;
}

int utf8_columns(const char *text, size_t length, uint32_t code)
{
    char name[UTF8_NAME_BYTES];
    const size_t named = utf8_name(text, length, code, name);
    return named ? (int)named : utf8_width(code);
}
