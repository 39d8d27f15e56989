/* A command line that opens the same session again. */
#include "cli/tables.h"

#include "engine/base/utf8.h"

#include <stdbool.h>
#include <string.h>

struct words {
    char *at;
    size_t left; /* with the NUL; 0: there was no room */
};

static void put(struct words *w, const char *text, size_t n)
{
    if (w->left <= n) {
        w->left = 0;
        return;
    }
    memcpy(w->at, text, n);
    w->at += n;
    w->left -= n;
    *w->at = '\0';
}

/* The byte as it stands between $' and ', where what a terminal acts on has no other place (POSIX.1-2024, 2.2.4). */
static void put_escaped(struct words *w, unsigned char byte)
{
    char text[8];
    const int plain = byte >= 0x20 && byte < 0x7F && byte != '\'' && byte != '\\';
    snprintf(text, sizeof text, plain ? "%c" : "\\%03o", byte); /* three digits and no more, as \x is not */
    put(w, text, strlen(text));
}

/* 1: the word holds what a terminal is not shown as it is. */
static bool is_foreign(const char *word)
{
    char name[UTF8_NAME_BYTES];
    uint32_t code;
    for (size_t n; (n = utf8_decode(word, &code)) > 0; word += n)
        if (utf8_name(word, n, code, name) > 0)
            return true;
    return false;
}

/* A word as a shell reads it: in quotes where it holds more than what stands for itself. */
static void put_word(struct words *w, const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./,:@%";
    if (*word && word[strspn(word, plain)] == '\0') {
        put(w, word, strlen(word));
        return;
    }
    const bool foreign = is_foreign(word);
    put(w, foreign ? "$'" : "'", foreign ? 2 : 1);
    for (; *word; word++) {
        const int quote = *word == '\'';
        if (foreign)
            put_escaped(w, (unsigned char)*word);
        else
            put(w, quote ? "'\\''" : word, quote ? 4 : 1);
    }
    put(w, "'", 1);
}

static void put_option(struct words *w, enum option_id option, const char *value)
{
    if (!value)
        return;
    put(w, " --", 3);
    put(w, option_rows[option].name, strlen(option_rows[option].name));
    put(w, " ", 1);
    put_word(w, value);
}

int options_subject(const struct options *o, char *out, size_t bytes)
{
    struct words w = {out, bytes};
    put_word(&w, o->files[0]);
    put_option(&w, OPTION_SHAPE, o->shape);
    put_option(&w, OPTION_PATCH, o->patch);
    put_option(&w, OPTION_MEM, o->mem);
    put_option(&w, OPTION_BACKEND, o->backend);
    put_option(&w, OPTION_PROBES, o->probes);
    for (int i = 0; i < o->n_settings; i++)
        put_option(&w, OPTION_SET, o->settings[i]);
    for (int i = 0; i < o->n_defines; i++)
        put_option(&w, OPTION_DEFINE, o->defines[i]);
    return w.left ? 0 : -1;
}
