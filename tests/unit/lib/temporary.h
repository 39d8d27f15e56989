/* Where a test's files go: a folder of the program's own below TMPDIR, removed when it ends. Behind one that is killed
 * tests/run empties TMPDIR. */
#ifndef TEST_TEMPORARY_H
#define TEST_TEMPORARY_H

enum { TEMPORARY = 256 };

/* A template for mkstemp() or mkdtemp(); path, [TEMPORARY]. */
char *temporary(char *path, const char *name);

#endif
