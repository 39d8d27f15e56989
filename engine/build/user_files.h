/* The user's own files that a build read, so that somebody can watch them. */
#ifndef BUILD_USER_FILES_H
#define BUILD_USER_FILES_H

/* Calls reads(ctx, path) for every file that the source included: text is what the preprocessor wrote, with line
   markers. Left out are system headers and what lies in own_folders (NULL-terminated, each ends with '/'). A file that
   is included twice is told twice. */
void user_files_tell(const char *text, const char *const *own_folders, void (*reads)(void *ctx, const char *path),
                     void *ctx);

#endif
