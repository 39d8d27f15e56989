#include "engine/child/keep.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FILES_MAX = 64, SITES_MAX = 1024, NAME_BYTES = sizeof((struct trace_site *)NULL)->file };

struct search {
    char file[FILES_MAX][NAME_BYTES]; /* read, or to be read */
    int n_files;
    struct trace_site *sites; /* [SITES_MAX] */
    size_t n_sites;
    const struct asc_plan *plan; /* borrowed: whose own values the kernel's are */
};

static void add_file(struct search *s, const char *name)
{
    if (strlen(name) >= NAME_BYTES || s->n_files == FILES_MAX)
        return;
    for (int i = 0; i < s->n_files; i++)
        if (strcmp(s->file[i], name) == 0)
            return;
    snprintf(s->file[s->n_files++], NAME_BYTES, "%s", name);
}

/* Blanks in the place of comments and of what stands in quotes, but for the names of #include lines. */
static void blank(char *text)
{
    bool include = false;
    for (char *at = text; *at; at++) {
        if (*at == '\n' || at == text)
            include = strncmp(at + (*at == '\n') + strspn(at + (*at == '\n'), " \t"), "#include", 8) == 0;
        if (at[0] == '/' && at[1] == '/') {
            while (*at && *at != '\n')
                *at++ = ' ';
            at--;
        } else if (at[0] == '/' && at[1] == '*') {
            const char *end = strstr(at + 2, "*/");
            for (; *at && (!end || at < end + 2); at++)
                *at = *at == '\n' ? '\n' : ' ';
            at--;
        } else if (*at == '"' && !include) {
            for (at++; *at && *at != '"' && *at != '\n'; at++) {
                if (*at == '\\' && at[1] && at[1] != '\n')
                    *at++ = ' ';
                *at = ' ';
            }
            at -= !*at || *at == '\n';
        }
    }
}

static void take_include(struct search *s, const char *from, const char *at)
{
    char name[NAME_BYTES], full[2 * NAME_BYTES];
    const char *slash = strrchr(from, '/');
    if (sscanf(at, "#include \"%255[^\"\n]\"", name) != 1 && sscanf(at, "# include \"%255[^\"\n]\"", name) != 1)
        return;
    snprintf(full, sizeof full, "%.*s%s", *name == '/' || !slash ? 0 : (int)(slash + 1 - from), from, name);
    const char *base = strrchr(name, '/');
    if (strncmp(base ? base + 1 : name, "attnscope", 9) != 0)
        add_file(s, full);
}

/* "ASC_RECORD(s, ...": at its first letter. */
static void take_probe(struct search *s, const char *file, const char *at, int line)
{
    char channel[24];
    const size_t n = strspn(at, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_");
    const char *open = at + n + strspn(at + n, " \t\n");
    const bool is_value = n == 9 && strncmp(at, "ASC_VALUE", 9) == 0;
    if ((strncmp(at, "ASC_RECORD", 10) != 0 && strncmp(at, "ASC_CUTE_", 9) != 0 && !is_value) || *open != '(' ||
        sscanf(open + 1, " %23[A-Za-z0-9_]", channel) != 1)
        return;
    const int ch = plan_channel_from_name(s->plan, channel);
    if (ch < 0 || s->n_sites == SITES_MAX)
        return;
    struct trace_site *site = &s->sites[s->n_sites++];
    *site = (struct trace_site){.channel = (enum asc_channel)ch, .line = line};
    snprintf(site->file, sizeof site->file, "%s", runner_short_path(file));
}

static void read_file(struct search *s, const char *name)
{
    FILE *file = fopen(name, "re");
    char *text = file ? malloc(TRACE_SOURCE_MAX + 1) : NULL;
    const size_t n = text ? fread(text, 1, TRACE_SOURCE_MAX, file) : 0;
    bool word = false;
    if (file)
        fclose(file);
    if (!text)
        return;
    text[n] = '\0';
    blank(text);
    for (int at = 0, line = 1; text[at]; at++) {
        line += text[at] == '\n';
        if (text[at] == '#')
            take_include(s, name, text + at);
        else if (!word && strncmp(text + at, "ASC_", 4) == 0)
            take_probe(s, name, text + at, line);
        word = isalnum((unsigned char)text[at]) || text[at] == '_';
    }
    free(text);
}

int keep_probe_lines(const char *const *files, size_t n_files, const struct asc_plan *plan, struct trace_site **out,
                     size_t *n, struct err *err)
{
    struct search *s = calloc(1, sizeof *s);
    if (s)
        s->sites = calloc(SITES_MAX, sizeof *s->sites);
    if (!s || !s->sites) {
        free(s);
        return err_no_memory(err, "", "the probe lines");
    }
    s->plan = plan;
    for (size_t i = 0; i < n_files; i++)
        add_file(s, files[i]);
    for (int i = 0; i < s->n_files; i++)
        read_file(s, s->file[i]);
    *out = s->sites;
    *n = s->n_sites;
    free(s);
    return 0;
}
