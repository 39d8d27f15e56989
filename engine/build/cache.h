/* Where builds are kept: one program per content, each put there by a rename, so that two attnscopes at once cannot
   harm each other. */
#ifndef BUILD_CACHE_H
#define BUILD_CACHE_H

#include "engine/base/err.h"
#include <stdbool.h>
#include <stddef.h>

/* Behind a program's name: what its compiler and linker said. */
#define CACHE_WORDS ".log"

/* XXH3-128 over all that is put in; each part counts with its length, so that parts do not run together. */
struct cache_key;
struct cache_key *cache_key_new(void); /* NULL: no memory */
void cache_key_add(struct cache_key *key, const void *bytes, size_t n);
void cache_key_add_text(struct cache_key *key, const char *text);
int cache_key_add_file(struct cache_key *key, const char *path, struct err *err);
void cache_key_finish(struct cache_key *key, char hex[33]); /* and frees it; NULL is legal with hex NULL */

/* A folder of one's own below the cache; with all that is in it, it goes with cache_drop_work(), or where this program
   is killed, with the next cache_make_work(). */
struct cache_work {
    char folder[600];
    int lock; /* owned: as long as it is locked somebody builds here */
};
int cache_make_work(const char *cache, struct cache_work *work, struct err *err);
void cache_drop_work(struct cache_work *work);
/* Whether somebody else makes the program of this key; if not, it is this caller's as long as `locks` is open. */
int cache_open_locks(const char *cache); /* -1: without locks each makes its own */
bool cache_is_being_made(int locks, const char hex[33]);
void cache_remove_folder(const char *folder); /* and all in it; follows no link */
/* Moves a file from the work folder to its place in the cache, where it is whole or not at all. */
int cache_keep(const char *file, const char *path, struct err *err);

/* Where others than the user can put programs into the cache, this one would run them: ERR_SYSTEM. The owner of `root`
   (attnscope's own files) is no stranger. */
int cache_check_owner(const char *cache, const char *root, struct err *err);

/* Forgets all but the `keep` entries last used; none that was used within min_age_s, and nothing of others.
   A program's words go with it. */
void cache_prune(const char *cache, size_t keep, double min_age_s);
void cache_touch(const char *path); /* it has been used now */

/* Reads a text file; ERR_INPUT where it is missing, no file, holds a NUL or is larger than 64 MiB. *text is owned. */
int cache_read_text(const char *path, const char *what, char **text, struct err *err);
/* Writes folder/name by way of a temporary name, making the folder. */
int cache_write_text(const char *folder, const char *name, const char *text, struct err *err);

#endif
