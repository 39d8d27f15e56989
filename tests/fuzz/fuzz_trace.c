/* The bytes of a saved trace. */
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_trace_file(fuzz_file(data, size), size ? data[size - 1] * 2654435761u + data[size / 2] : 0);
    return 0;
}

/* Words that the header's fields have, and such as they must not have. */
static const char *const words[] = {
    "0",
    "1",
    "2",
    "3",
    "4",
    "7",
    "8",
    "64",
    "-1",
    "1e308",
    "-0.0",
    "1e-45",
    "2147483647",
    "4294967296",
    "\"f16\"",
    "\"bf16\"",
    "\"f32\"",
    "\"f64\"",
    "\"e4m3\"",
    "\"u8\"",
    "\"crashed\"",
    "\"hung\"",
    "\"on\"",
    "\"off\"",
    "\"complete\"",
    "\"full\"",
    "\"per-head\"",
    "\"BLHD\"",
    "\"\"",
    "null",
    "[]",
    "{}",
    "true",
    "\\u001b[2J",
    "\\u0000",
    "\\u202e",
    "\"top-left\"",
    "9223372036854775807",
};
enum { WORDS = sizeof words / sizeof *words };

static unsigned draw(unsigned *state, size_t n)
{
    *state ^= *state << 13;
    *state ^= *state >> 17;
    *state ^= *state << 5;
    return (unsigned)(*state % n);
}

/* Words of the data become others, some in rows. */
static void change_data(uint8_t *data, size_t n, unsigned *state)
{
    static const uint32_t values[] = {0,          0x3F800000, 0xBF800000, 0x7F800000, 0xFF800000,
                                      0x7FC00000, 0x7FF57FF5, 1,          0x7F7FFFFF, 0x80000000,
                                      0x3C003C00, 0x7C007C00, 0xFC00FC00, 0x7BFF7BFF, 0xFFFFFFFF};
    for (unsigned times = 1 + draw(state, 16); times > 0; times--) {
        const size_t at = (size_t)draw(state, n / 4) * 4;
        const uint32_t value =
            draw(state, 4) ? values[draw(state, sizeof values / sizeof *values)] : draw(state, UINT32_MAX);
        const size_t row = draw(state, 8) ? 1 : 1 + draw(state, 64);
        for (size_t i = 0; i < row && at + 4 * i + 4 <= n; i++)
            memcpy(data + at + 4 * i, &value, sizeof value);
    }
}

/* A value of the header becomes another word; its length and the data's alignment stay right. Returns the new size. */
static size_t change_header(uint8_t *data, size_t size, size_t max, unsigned *state)
{
    char word[80];
    uint64_t header;
    memcpy(&header, data, sizeof header);
    const size_t end = 8 + (size_t)header;
    size_t at = 8 + draw(state, (size_t)header), n = 0;
    while (at < end && data[at] != ':')
        at++;
    if (at >= end)
        return size;
    size_t last = ++at;
    while (last < end && !strchr(",}]:", data[last]))
        last++;
    /* Within the texts of the metadata, which are JSON themselves, quotes are escaped. */
    const int escaped = last > 8 && data[last - 1] != '"' && draw(state, 2);
    for (const char *c = words[draw(state, WORDS)]; *c && n + 2 < sizeof word; c++) {
        if (*c == '"' && escaped)
            word[n++] = '\\';
        word[n++] = *c;
    }
    const size_t length = at + n + (end - last), padded = 8 + (length - 8 + 7) / 8 * 8;
    char *made = size - end + padded > max ? NULL : malloc(padded);
    if (!made)
        return size;
    memcpy(made, data, at);
    memcpy(made + at, word, n);
    memcpy(made + at + n, data + last, end - last);
    memset(made + length, ' ', padded - length);
    header = padded - 8;
    memcpy(made, &header, sizeof header);
    memmove(data + padded, data + end, size - end);
    memcpy(data, made, padded);
    free(made);
    return size - end + padded;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed)
{
    unsigned state = seed * 2654435761u | 1;
    uint64_t header = 0;
    if (size >= 16)
        memcpy(&header, data, sizeof header);
    const unsigned how = draw(&state, 10);
    if (header < 16 || header > size - 8 || how == 0)
        return LLVMFuzzerMutate(data, size, max);
    const size_t n_data = size - 8 - (size_t)header;
    if (how <= 4 && n_data >= 8) {
        change_data(data + 8 + header, n_data, &state);
        return size;
    }
    return change_header(data, size, max, &state);
}
