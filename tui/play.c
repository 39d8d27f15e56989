#include "tui/play.h"

#include "engine/base/text.h"
#include "tui/keys/actions.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* "0.8s" */
static bool is_seconds(const char *word, double *seconds)
{
    int end = 0;
    return sscanf(word, "%9lf%n", seconds, &end) == 1 && strcmp(word + end, "s") == 0 && isfinite(*seconds) &&
           *seconds > 0 && *seconds <= 60;
}

/* The next word of a line, without its quotes; NULL: there is none. *quoted: it had some. */
static char *next_word(char **line, bool *quoted)
{
    char *word = *line + strspn(*line, " \t\r\n");
    *quoted = *word == '"' && word[1] && strchr(word + 1, '"');
    if (!*word || (*word == '#' && (!word[1] || word[1] == ' ')))
        return NULL;
    word += *quoted;
    char *end = word + strcspn(word, *quoted ? "\"" : " \t\r\n");
    *line = *end ? end + 1 : end;
    *end = '\0';
    return word;
}

static int add(struct play *p, int key, const char *text)
{
    struct play_step *more = realloc(p->step, ((size_t)p->n + 1) * sizeof *more);
    if (!more)
        return -1;
    p->step = more;
    p->step[p->n] = (struct play_step){.key = key, .seconds = PLAY_STAYS_S};
    snprintf(p->step[p->n].text, sizeof p->step[p->n].text, "%s", text);
    p->n++;
    return 0;
}

static int read_line(struct play *p, char *line, const char *where, struct err *err)
{
    const int first = p->n;
    double seconds;
    bool quoted;
    char named[PLAY_KEY_BYTES];
    for (char *word; (word = next_word(&line, &quoted));) {
        if (!quoted && is_seconds(word, &seconds)) {
            if (p->n == first && add(p, KEY_ID_NONE, "") != 0)
                return err_no_memory(err, where, "keys");
            for (int i = first; i < p->n; i++)
                p->step[i].seconds = seconds;
            if (next_word(&line, &quoted))
                return err_set(err, ERR_INPUT, where, "expected seconds at the end of the line");
            break;
        }
        const int key = quoted ? KEY_ID_NONE : key_from_name(word);
        if ((!quoted && key == KEY_ID_NONE) || strlen(word) >= PLAY_KEY_BYTES || !*word) {
            text_name(word, strlen(word), named, sizeof named);
            return err_set(err, ERR_INPUT, where,
                           "'%s' is no key: expected its name, such as n, Enter or C-l, \"text\" or 0.8s", named);
        }
        if (add(p, key, word) != 0)
            return err_no_memory(err, where, "keys");
    }
    return 0;
}

int play_read(const char *path, struct play *out, struct err *err)
{
    char line[512], where[sizeof err->where];
    int failed = 0;
    *out = (struct play){.n = 0};
    FILE *in = fopen(path, "r");
    if (!in)
        return err_errno(err, path, "the keys cannot be read");
    for (int number = 1; !failed && fgets(line, sizeof line, in); number++) {
        snprintf(where, sizeof where, "%s:%d", path, number);
        failed = read_line(out, line, where, err);
    }
    if (!failed && ferror(in))
        failed = err_errno(err, path, "the keys cannot be read");
    fclose(in);
    if (failed)
        play_free(out);
    return failed;
}

void play_free(struct play *p)
{
    free(p->step);
    *p = (struct play){.n = 0};
}
