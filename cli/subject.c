/* A command line that opens the same session again. */
#include "cli/tables.h"

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

/* A word as a shell reads it: in quotes where it holds more than what stands for itself. */
static void put_word(struct words *w, const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./,:@%";
    if (*word && word[strspn(word, plain)] == '\0') {
        put(w, word, strlen(word));
        return;
    }
    put(w, "'", 1);
    for (; *word; word++) {
        const int quote = *word == '\'';
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
