#include "engine/trace/own_values.h"

#include "engine/trace/layout.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

const char *const own_value_cols[] = {[ASC_COLS_ONE] = "1",
                                      [ASC_COLS_BC] = "bc",
                                      [ASC_COLS_HEAD_DIM] = "head_dim",
                                      [ASC_COLS_HEAD_DIM_V] = "head_dim_v",
                                      NULL};

enum { WORDS = 3, WORD_BYTES = 40 };

const char *own_value_name_refused(const char *name)
{
    /* Of places and conditions: k3, nan. */
    static const char *const taken[] = {"any",     "global", "bad",   "off",  "nan",   "inf",
                                        "missing", "extra",  "ratio", "mean", "falls", "rises"};
    const size_t n = strlen(name);
    bool valid = n > 0 && n < sizeof((struct asc_value *)NULL)->name && !isdigit((unsigned char)name[0]);
    for (size_t i = 0; i < n; i++)
        valid = valid && (isalnum((unsigned char)name[i]) || name[i] == '_');
    if (!valid)
        return "is no name of at most 23 letters, digits and _";
    if (channel_from_name(name) >= 0)
        return "is a channel already";
    if (n > 1 && strchr("bhqkrc", name[0]) && strspn(name + 1, "0123456789") == n - 1)
        return "means a place (k3: kv tile 3)";
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++)
        if (strcmp(name, taken[i]) == 0)
            return "is a word of conditions";
    return "";
}

/* The words of "(raw, bc, F16)"; returns behind it, NULL: it is none. */
static const char *split(const char *text, char words[WORDS][WORD_BYTES], int *n)
{
    *n = 0;
    if (*text != '(')
        return NULL;
    do {
        text += 1 + strspn(text + 1, " \t\n");
        const size_t length = strcspn(text, ",() \t\n");
        if (*n == WORDS || length >= WORD_BYTES || !length)
            return NULL;
        snprintf(words[(*n)++], WORD_BYTES, "%.*s", (int)length, text);
        text += length;
        text += strspn(text, " \t\n");
    } while (*text == ',');
    return *text == ')' ? text + 1 : NULL;
}

static int number_of(const char *word, const char *const names[])
{
    for (int i = 0; names[i]; i++)
        if (strcmp(names[i], word) == 0)
            return i;
    return -1;
}

static int dtype_of(const char *word)
{
    static const char *const names[] = {
#define DTYPE(id, safetensors, bytes, name) #id,
#include "engine/base/dtypes.def"
#undef DTYPE
        NULL};
    return number_of(word, names);
}

int own_values_parse(const char *text, const char *where, struct asc_value out[ASC_OWN_CHANNELS], struct err *err)
{
    static const char expected[] = "expected (NAME, COLUMNS) or (NAME, COLUMNS, TYPE), as in (factor, 1, F16)";
    memset(out, 0, ASC_OWN_CHANNELS * sizeof *out);
    int n = 0;
    for (text += strspn(text, " \t\n"); *text; text += strspn(text, " \t\n,")) {
        char words[WORDS][WORD_BYTES];
        int n_words;
        const char *rest = split(text, words, &n_words);
        if (!rest || n_words < 2)
            return err_set(err, ERR_INPUT, where, "ASC_VALUES: found '%.20s'; %s", text, expected);
        if (n == ASC_OWN_CHANNELS)
            return err_set(err, ERR_INPUT, where, "ASC_VALUES takes at most %d values", ASC_OWN_CHANNELS);
        const char *refused = own_value_name_refused(words[0]);
        if (*refused)
            return err_set(err, ERR_INPUT, where, "ASC_VALUES: '%s' %s", words[0], refused);
        const int cols = number_of(words[1], own_value_cols), type = n_words > 2 ? dtype_of(words[2]) : (int)ASC_F32;
        if (cols < 0)
            return err_set(err, ERR_INPUT, where,
                           "ASC_VALUES: the columns of %s are '%s'; expected bc, head_dim, head_dim_v or 1", words[0],
                           words[1]);
        if (type < 0)
            return err_set(err, ERR_INPUT, where, "ASC_VALUES: the type of %s is '%s'; expected F32, F16, BF16, ...",
                           words[0], words[2]);
        snprintf(out[n].name, sizeof out[n].name, "%.23s", words[0]);
        out[n].cols = cols;
        out[n++].dtype = type;
        text = rest;
    }
    return n ? 0 : err_set(err, ERR_INPUT, where, "ASC_VALUES is empty; %s", expected);
}
