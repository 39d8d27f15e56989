/* What a build was made from, so that the next one can see whether anything has changed without running a compiler:
   every file the preprocessor read, the folders it looked in, the compiler, attnscope's library; each by modification
   time, size and inode. */
#ifndef BUILD_INPUTS_H
#define BUILD_INPUTS_H

#include <stdbool.h>
#include <time.h>

struct build_inputs;

/* text: what the preprocessor wrote of `source`, with line markers. arguments: the compiler's, [n], the compiler first.
   signature: of all that is not looked up in files: flags, the text of the source itself. began: before anything was
   read; what has changed since, or so shortly before that a clock's tick may hide it, is not relied on. NULL: nothing
   to rely on. */
struct build_inputs *build_inputs_new(const char *text, const char *source, const char *const *arguments, int n,
                                      const char *library, const char *signature, const struct timespec *began);
struct build_inputs *build_inputs_copy(const struct build_inputs *inputs); /* NULL: no memory, or NULL given */
void build_inputs_free(struct build_inputs *inputs);                       /* NULL is legal */

/* Which file a program is and of when, in words: "" where there is none. */
void build_tool_identity(const char *name, char *out, size_t size);

/* Whether a build of this signature would read the same files, and none has changed. NULL: false. */
bool build_inputs_unchanged(const struct build_inputs *inputs, const char *signature);

/* The user's own files that a build read, so that somebody can watch them.
   Calls reads(ctx, path) for every file that the source included: text is what the preprocessor wrote, with line
   markers. Left out are system headers and what lies in own_folders (NULL-terminated, each ends with '/'). A file that
   is included twice is told twice. */
void user_files_tell(const char *text, const char *const *own_folders, void (*reads)(void *ctx, const char *path),
                     void *ctx);

#endif
