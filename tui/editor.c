#include "tui/editor.h"

#include "tui/keys/actions.h"

#include "tui/screen/term.h"
#include "tui/views/panels.h"
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct {
    const char *name, *arguments;
} editors[] = {
#define EDITOR(name, arguments) {name, arguments},
#include "tui/editors.def"
#undef EDITOR
};

const char *editor_chosen(void)
{
    const char *visual = getenv("VISUAL"), *editor = getenv("EDITOR");
    return visual && *visual ? visual : editor && *editor ? editor : "vi";
}

static const char *arguments_of(const char *name)
{
    for (size_t i = 0; i < sizeof editors / sizeof *editors; i++)
        if (strcmp(editors[i].name, name) == 0)
            return editors[i].arguments;
    return "FILE";
}

/* Appends text, with FILE and LINE filled in where `fill` is 1, and its NUL. NULL: no room. */
static char *put(struct editor_command *c, size_t *used, const char *text, const char *file, const char *line)
{
    char *begin = c->room + *used;
    while (*text) {
        const char *word = file && strncmp(text, "FILE", 4) == 0   ? file
                           : line && strncmp(text, "LINE", 4) == 0 ? line
                                                                   : NULL;
        const size_t n = word ? strlen(word) : 1;
        if (*used + n + 1 > sizeof c->room)
            return NULL;
        memcpy(c->room + *used, word ? word : text, n);
        *used += n;
        text += word ? 4 : 1;
    }
    c->room[(*used)++] = '\0';
    return begin;
}

int editor_command(const char *editor, const char *file, int line, struct editor_command *out)
{
    char number[16], plain[PATH_MAX], script[1024], form[32];
    size_t used = 0;
    int n = 0;
    *out = (struct editor_command){0};
    if (!editor || !*editor)
        editor = "vi";
    const size_t word = strcspn(editor, " \t");
    const char *name = editor;
    for (const char *c = editor; c < editor + word; c++)
        if (*c == '/')
            name = c + 1;
    snprintf(out->name, sizeof out->name, "%.*s", (int)(editor + word - name), name);
    snprintf(number, sizeof number, "%d", line > 0 ? line : 1);
    if ((size_t)snprintf(plain, sizeof plain, "%s%s", *file == '-' || *file == '+' ? "./" : "", file) >= sizeof plain ||
        (size_t)snprintf(script, sizeof script, "%s \"$@\"", editor) >= sizeof script)
        return -1;
    const char *const fixed[] = {"/bin/sh", "-c", script, out->name};
    for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++)
        if (!(out->argv[n++] = put(out, &used, fixed[i], NULL, NULL)))
            return -1;
    snprintf(form, sizeof form, "%s", arguments_of(out->name));
    char *rest = NULL;
    for (char *part = strtok_r(form, " ", &rest); part; part = strtok_r(NULL, " ", &rest))
        if (!(out->argv[n++] = put(out, &used, part, plain, number)))
            return -1;
    return 0;
}

/* The words of a line without the blanks around them: an indent is no other line. */
static const char *words_of(const char *text, size_t *length)
{
    *length = strcspn(text, "\n");
    while (*length > 0 && (*text == ' ' || *text == '\t')) {
        text++;
        --*length;
    }
    while (*length > 0 && (text[*length - 1] == ' ' || text[*length - 1] == '\r'))
        --*length;
    return text;
}

int editor_line(const char *file, const char *text, int line)
{
    size_t n_wanted = 0, n;
    int best = 0, number = 1;
    for (int i = 1; text && i < line && *text; i++) {
        text += strcspn(text, "\n");
        text += *text == '\n';
    }
    const char *wanted = text && line > 0 ? words_of(text, &n_wanted) : NULL;
    FILE *in = wanted && n_wanted ? fopen(file, "r") : NULL;
    if (!in)
        return line > 0 ? line : 1;
    char *read = NULL;
    size_t room = 0;
    for (; getline(&read, &room, in) > 0; number++) {
        const char *words = words_of(read, &n);
        if (n == n_wanted && memcmp(words, wanted, n) == 0 && (!best || abs(number - line) < abs(best - line)))
            best = number;
    }
    free(read);
    fclose(in);
    return best ? best : line;
}

static bool changed(const struct stat *a, const struct stat *b)
{
    return a->st_ino != b->st_ino || a->st_size != b->st_size || a->st_mtim.tv_sec != b->st_mtim.tv_sec ||
           a->st_mtim.tv_nsec != b->st_mtim.tv_nsec;
}

void editor_open(struct session *s, const char *file, int line)
{
    struct editor_command command;
    struct stat before, after;
    int status = 0;
    if (stat(file, &before) != 0) {
        session_say(s, "%.200s is not on this machine", file);
        return;
    }
    if (editor_command(editor_chosen(), file, line, &command) != 0) {
        session_say(s, "the editor's command is too long");
        return;
    }
    if (term_run(command.argv, &status) != 0)
        session_say(s, "cannot start a process for %s", command.name);
    else if (WIFEXITED(status) && (WEXITSTATUS(status) == 127 || WEXITSTATUS(status) == 126))
        session_say(s, "cannot start %s: set VISUAL or EDITOR", command.name);
    else if (WIFSIGNALED(status))
        session_say(s, "%s was ended by signal %d", command.name, WTERMSIG(status));
    else if (WEXITSTATUS(status) != 0)
        session_say(s, "%s ended with status %d", command.name, WEXITSTATUS(status));
    if (s->subject.has_scenario && !session_watching(s) && stat(file, &after) == 0 && changed(&before, &after))
        session_ask_rerun(s);
}

void editor_open_source(struct session *s)
{
    const char *file = source_file(s);
    const int line = source_line(s);
    if (!file)
        session_say(s, "the source of this run is not known");
    else
        editor_open(s, file, editor_line(file, s->run.trace ? trace_source(s->run.trace, file) : NULL, line));
}

int keys_write_docs(FILE *out)
{
    if (actions_write_docs(out))
        return -1;
    fputs("\nThe editor is `VISUAL`, else `EDITOR`, else vi; either may hold arguments (`code --wait`, `emacs -nw`). "
          "The table shows how each editor is told the line; any other editor gets the file name alone.\n\n| editor | "
          "arguments |\n| --- | --- |\n",
          out);
    for (size_t i = 0; i < sizeof editors / sizeof *editors; i++)
        fprintf(out, "| `%s` | `%s` |\n", editors[i].name, editors[i].arguments);
    return ferror(out) ? -1 : 0;
}
