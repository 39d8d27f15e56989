#include "tui/actions.h"

#include "tui/editor.h"

#include "tui/utf8.h"
#include <string.h>

static const struct action_text texts[ACTION_COUNT] = {
#define ACTION(id, keys, name, hint, help) {keys, name, hint, help},
#include "tui/actions.def"
#undef ACTION
};

static const struct {
    const char *name;
    int id;
} names[] = {
#define KEY(id, name, curses) {name, id},
#include "tui/keys.def"
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

enum action action_of_key(int key)
{
    for (int a = 0; a < ACTION_COUNT; a++) {
        const char *rest = texts[a].keys;
        while (*rest) {
            char name[16];
            size_t length = strcspn(rest, " ");
            if (length < sizeof name) {
                memcpy(name, rest, length);
                name[length] = '\0';
                if (key_from_name(name) == key)
                    return a;
            }
            rest += length;
            rest += strspn(rest, " ");
        }
    }
    return ACTION_NONE;
}

int actions_write_docs(FILE *out)
{
    fputs("# Keys\n\n"
          "Generated from `tui/actions.def` by `make docs`. `C-` is Ctrl, `S-` is Shift.\n\n"
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
    return editor_write_docs(out);
}
