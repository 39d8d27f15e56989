#include "tui/keys/actions.h"

#include "engine/base/utf8.h"
#include <string.h>

static struct action_text texts[ACTION_COUNT] = {
#define ACTION(id, keys, name, hint, help, effect) {keys, name, hint, help},
#include "tui/keys/actions.def"
#undef ACTION
};

static const char opens[ACTION_COUNT] = {
#define MOVES(verb, by) 0
#define DOES(function) 0
#define OPENS(view) 1
#define SHOWS(view, function) 1
#define LEFT_TO_VIEWS 0
#define ACTION(id, keys, name, hint, help, effect) effect,
#include "tui/keys/actions.def"
#undef ACTION
#undef MOVES
#undef DOES
#undef OPENS
#undef SHOWS
#undef LEFT_TO_VIEWS
};

/* Keys of the user's own; texts[].keys then points here. */
#define KEYS_BYTES 64
static char own_keys[ACTION_COUNT][KEYS_BYTES];
static enum { AS_MADE, LOST_A_KEY, CHOSEN } rebound[ACTION_COUNT];

static const struct {
    const char *name;
    int id;
} names[] = {
#define KEY(id, name, curses) {name, id},
#include "tui/keys/keys.def"
#undef KEY
};

const struct action_text *action_text(enum action a)
{
    return &texts[a];
}

int key_from_name(const char *name)
{
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i].name, name) == 0)
            return names[i].id;
    if (name[0] == 'C' && name[1] == '-' && name[2] >= 'a' && name[2] <= 'z' && name[3] == '\0')
        return name[2] - 'a' + 1;
    uint32_t code;
    size_t length = utf8_decode(name, &code);
    return length > 0 && name[length] == '\0' ? (int)code : KEY_ID_NONE;
}

/* Takes the next of some names separated by blanks; "" at the end. One that is too long is no key's. */
static const char *next_name(const char *rest, char *name, size_t bytes)
{
    rest += strspn(rest, " ");
    const size_t length = strcspn(rest, " ");
    snprintf(name, bytes, "%.*s", (int)length, rest);
    return rest + length;
}

static bool has_key(const char *keys, int key)
{
    char name[16];
    for (keys = next_name(keys, name, sizeof name); *name; keys = next_name(keys, name, sizeof name))
        if (key_from_name(name) == key)
            return true;
    return false;
}

enum action action_of_key(int key)
{
    for (int a = 0; key != KEY_ID_NONE && a < ACTION_COUNT; a++)
        if (has_key(texts[a].keys, key))
            return (enum action)a;
    return ACTION_NONE;
}

int action_from_name(const char *name)
{
    for (int a = 0; a < ACTION_COUNT; a++)
        if (strcmp(texts[a].name, name) == 0)
            return (enum action)a;
    return ACTION_NONE;
}

bool action_opens_view(enum action a)
{
    return opens[a];
}

bool action_rebound(enum action a)
{
    return rebound[a] != AS_MADE;
}

/* Another action has been given the key. */
static void lose_key(int a, int key)
{
    char left[KEYS_BYTES] = "", name[16];
    size_t used = 0;
    const char *rest = texts[a].keys;
    for (rest = next_name(rest, name, sizeof name); *name; rest = next_name(rest, name, sizeof name))
        if (key_from_name(name) != key)
            used += (size_t)snprintf(left + used, sizeof left - used, "%s%s", used ? " " : "", name);
    memcpy(own_keys[a], left, sizeof left);
    texts[a].keys = own_keys[a];
    rebound[a] = LOST_A_KEY;
}

int action_bind(enum action a, const char *keys, char *wrong, size_t bytes, enum action *holder)
{
    char name[32];
    *holder = ACTION_NONE;
    const char *rest = keys;
    for (rest = next_name(rest, name, sizeof name); *name; rest = next_name(rest, name, sizeof name)) {
        const int key = key_from_name(name);
        for (int other = 0; other < ACTION_COUNT; other++)
            if (key != KEY_ID_NONE && other != (int)a && rebound[other] == CHOSEN && has_key(texts[other].keys, key))
                *holder = other;
        if (key == KEY_ID_NONE || *holder != ACTION_NONE || strlen(keys) >= KEYS_BYTES) {
            snprintf(wrong, bytes, "%s", name);
            return -1;
        }
    }
    rest = keys;
    for (rest = next_name(rest, name, sizeof name); *name; rest = next_name(rest, name, sizeof name))
        for (int other = 0; other < ACTION_COUNT; other++)
            if (other != (int)a && has_key(texts[other].keys, key_from_name(name)))
                lose_key(other, key_from_name(name));
    snprintf(own_keys[a], KEYS_BYTES, "%s", keys + strspn(keys, " "));
    texts[a].keys = own_keys[a];
    rebound[a] = CHOSEN;
    return 0;
}

int actions_write_docs(FILE *out)
{
    fputs("# Keys\n\n"
          "Generated from `tui/keys/actions.def` by `make docs`. `C-` is Ctrl, `S-` is Shift.\n\n"
          "| key | action | what it does |\n| --- | --- | --- |\n",
          out);
    for (int a = 0; a < ACTION_COUNT; a++) {
        fputs("| ", out);
        for (const char *rest = texts[a].keys; *rest;) {
            int length = (int)strcspn(rest, " ");
            fprintf(out, *rest == '`' ? "`` %.*s ``" : "`%.*s`", length, rest);
            rest += length;
            rest += strspn(rest, " ");
            if (*rest)
                fputc(' ', out);
        }
        fprintf(out, " | %s | %s |\n", texts[a].name, texts[a].help);
    }
    return ferror(out) ? -1 : 0;
}

static const struct command_text commands[] = {
#define COMMAND(name, arguments, completion, help, function) {name, arguments, help, completion},
#include "tui/keys/commands.def"
#undef COMMAND
};

const struct command_text *command_text(int i)
{
    return i >= 0 && i < (int)(sizeof commands / sizeof *commands) ? &commands[i] : NULL;
}

static const struct word_text words[] = {
#define WORD(term, meaning) {term, meaning},
#include "tui/keys/words.def"
#undef WORD
};

const struct word_text *word_text(int i)
{
    return i >= 0 && i < (int)(sizeof words / sizeof *words) ? &words[i] : NULL;
}

/* A | is no end of a cell. */
static void put_cell(FILE *out, const char *text)
{
    for (; *text; text++)
        fputs(*text == '|' ? "\\|" : (char[]){*text, '\0'}, out);
}

int words_write_docs(FILE *out)
{
    fputs("# Words\n\nGenerated from `tui/keys/words.def` by `make docs`. One word for one idea, in the program and in "
          "its pages; "
          "`:help TERM` shows the same.\n\n| term | meaning |\n| --- | --- |\n",
          out);
    const struct word_text *word;
    for (int i = 0; (word = word_text(i)); i++) {
        fputs("| ", out);
        put_cell(out, word->term);
        fputs(" | ", out);
        put_cell(out, word->meaning);
        fputs(" |\n", out);
    }
    return ferror(out) ? -1 : 0;
}
