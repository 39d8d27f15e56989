#include "tui/recent.h"

#include "engine/base/replace.h"
#include "tui/config.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int list_path(char *path, size_t bytes)
{
    return config_path("XDG_STATE_HOME", ".local/state", "recent", path, bytes);
}

/* "SPLIT<tab>PLACE<tab>PATH" */
static int take_line(char *line, struct recent_entry *e)
{
    char *end = NULL, *at = strchr(line, '\t'), *path = at ? strchr(at + 1, '\t') : NULL;
    if (!path)
        return -1;
    *at++ = *path++ = '\0';
    path[strcspn(path, "\n")] = '\0';
    const long split = strtol(line, &end, 10);
    if (*end || split < 0 || split > 10000 || path[0] != '/' || strlen(path) >= sizeof e->path ||
        strlen(at) >= sizeof e->at)
        return -1;
    *e = (struct recent_entry){.split = (int)split};
    memcpy(e->path, path, strlen(path));
    memcpy(e->at, at, strlen(at));
    return 0;
}

void recent_load(struct recent *r)
{
    char path[512], line[sizeof r->at[0].path + CURSOR_WORDS_BYTES + 32];
    *r = (struct recent){.n = 0};
    FILE *in = list_path(path, sizeof path) == 0 ? fopen(path, "r") : NULL;
    while (in && r->n < RECENT_MAX && fgets(line, sizeof line, in))
        if (strchr(line, '\n') && take_line(line, &r->at[r->n]) == 0 && !recent_find(r, r->at[r->n].path))
            r->n++;
    if (in)
        fclose(in);
}

const struct recent_entry *recent_find(const struct recent *r, const char *path)
{
    for (int i = 0; i < r->n; i++)
        if (strcmp(r->at[i].path, path) == 0)
            return &r->at[i];
    return NULL;
}

/* The folder that a path lies in, and those above it. */
static int make_folders(char *path)
{
    for (char *c = path + 1; *c; c++) {
        if (*c != '/')
            continue;
        *c = '\0';
        const bool failed = mkdir(path, 0700) != 0 && errno != EEXIST;
        *c = '/';
        if (failed)
            return -1;
    }
    return 0;
}

static int write_entry(FILE *out, const struct recent_entry *e)
{
    return fprintf(out, "%d\t%s\t%s\n", e->split, e->at, e->path) < 0 ? -1 : 0;
}

static int write_list(FILE *out, const struct recent_entry *first)
{
    struct recent before;
    recent_load(&before);
    int failed = write_entry(out, first), n = 1;
    for (int i = 0; i < before.n && n < RECENT_MAX && !failed; i++)
        if (strcmp(before.at[i].path, first->path) != 0) {
            failed = write_entry(out, &before.at[i]);
            n++;
        }
    return failed;
}

int recent_note(const struct recent_entry *entry)
{
    char path[512];
    struct replacement r;
    if (strpbrk(entry->path, "\t\n") || list_path(path, sizeof path) != 0 || make_folders(path) != 0 ||
        replace_open(&r, path, 0600, NULL) != 0)
        return -1;
    if (write_list(r.file, entry) == 0)
        return replace_commit(&r, NULL);
    replace_drop(&r);
    return -1;
}
