/* What the files of the room share beside bundle.h. */
#ifndef BUNDLE_PARTS_H
#define BUNDLE_PARTS_H

#include "engine/bundle/bundle.h"

#include <limits.h>

struct source_file {
    char *path;       /* owned */
    const char *text; /* borrowed; NULL: the file has it */
};

/* The user's sources, by full paths. */
struct sources {
    struct source_file *at; /* owned, [n], by path */
    size_t n;
    char root[PATH_MAX]; /* the folder that all lie in; "": the root of the file system */
    char kernel[PATH_MAX];
};

/* manifest.c: manifest and repro.sh, of what is packed by now. */
int manifest_pack(const struct bundle_subject *of, const struct sources *sources, int n_slots, struct container *out,
                  struct err *err);

/* sources.c: what a build has read, or what a trace holds of it. */
int sources_of_build(const struct bundle_subject *of, struct sources *s, struct err *err);
int sources_of_text(const struct runner_paths *paths, const struct scenario *scenario, struct sources *s,
                    struct err *err); /* as bundle_problem() has them */
int sources_of_trace(const struct trace *t, struct sources *s, struct err *err);
int sources_pack(const struct sources *s, struct container *out, struct err *err);
bool sources_hold(const struct sources *s, const char *folder); /* one that lies in it */
/* A source's name in the bundle, or that of a folder with sources. */
bool source_place(const struct sources *s, const char *path, char *out, size_t bytes);
void sources_free(struct sources *s);

#endif
